// Scheme: every kind the API knows, one registration each. Generic code (REST handlers, discovery,
// OpenAPI, tables, the CLI's resource names) reads it and knows no kind by itself.
// - Threads: core executor; KindInfo is immutable and shared. CRDs add and replace kinds.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"
#include "kube/api/schema/schema.h"

namespace swell::api {

struct GroupVersionKind {
  std::string group;
  std::string version;
  std::string kind;
  auto operator<=>(const GroupVersionKind&) const = default;
  std::string ApiVersion() const { return group.empty() ? version : group + "/" + version; }
};
GroupVersionKind ParseGvk(std::string_view api_version, std::string_view kind);
GroupVersionKind GvkOf(const json::Value& object);

struct PrinterColumn {
  std::string name;
  std::string type = "string";  // string, integer, date, boolean, number
  std::string format;
  std::string description;
  int priority = 0;       // 0: shown always; 1: only with -o wide
  std::string json_path;  // CRD columns and simple built-in ones
};

// One version of one kind.
struct KindInfo {
  GroupVersionKind gvk;
  std::string plural;
  std::string singular;
  std::vector<std::string> short_names;
  std::vector<std::string> categories;
  bool namespaced = true;
  SchemaPtr schema;
  bool has_status = false;  // the status subresource
  bool has_scale = false;
  bool custom = false;  // from a CRD
  bool served = true;
  bool read_only = false;         // reviews and the like: create only, nothing stored
  bool stored_otherwise = false;  // stored in another version of the built-in kind
  bool computed = false;          // made up when asked for: get and list only, nothing stored
  std::string scale_spec_path, scale_status_path, scale_selector_path;  // ".spec.replicas"
  std::vector<std::string> subresources;  // "status", "binding", "eviction", "log", "scale", …
  std::vector<std::string> verbs;         // as discovery lists them
  std::vector<std::string> selectable_fields;  // "spec.nodeName", beyond metadata.*
  std::string deprecation;  // what users of the version are warned of; empty: nothing
  // Rules of a custom kind beyond its schema (x-kubernetes-validations); empty: it has none. `old`
  // is null for a new object.
  std::function<std::vector<FieldError>(const json::Value& object, const json::Value* old)> rules;
  // Objects of a custom kind that were stored before this version of the store may lack defaults of
  // the schema. 0: the definition has no defaults.
  uint64_t defaults_from = 0;
  std::vector<PrinterColumn> columns;  // empty: NAME and AGE, or a built-in printer

  // "pods", "pytorchjobs.kubeflow.org": the same for every version of the kind.
  std::string StoreResource() const;
  // "pods", "pytorchjobs.kubeflow.org" as messages name it.
  std::string GroupResource() const;
};
using KindPtr = std::shared_ptr<const KindInfo>;

class Scheme {
 public:
  // With all built-in kinds. CRD kinds of swell.dev, kubeflow.org, … are not built in: they are
  // CustomResourceDefinitions (kube/api/crd/crds.h) like everybody else's.
  static std::unique_ptr<Scheme> BuiltIn();

  KindPtr FindKind(const GroupVersionKind& gvk) const;
  KindPtr FindResource(std::string_view group,
                       std::string_view version,
                       std::string_view plural) const;
  // Every version of one resource, storage version first.
  std::vector<KindPtr> Versions(std::string_view group, std::string_view plural) const;
  // The version objects are stored in.
  KindPtr StorageKind(std::string_view group, std::string_view plural) const;

  struct Group {
    std::string name;                   // "" is the core group
    std::vector<std::string> versions;  // preferred first
  };
  std::vector<Group> Groups() const;  // core first, then Kubernetes' order, then CRDs' by name
  std::vector<KindPtr> KindsOf(std::string_view group, std::string_view version) const;

  // CRDs. `storage` marks the stored version. Replaces an earlier registration.
  void Register(KindInfo kind, bool storage);
  void Unregister(std::string_view group, std::string_view plural);
  // Grows with every change: caches of discovery and OpenAPI compare it.
  uint64_t generation() const { return generation_; }

  // Rewrites apiVersion (and, where versions differ in shape, the fields) for another version.
  Status Convert(json::Value& object, const KindInfo& to) const;

 private:
  std::vector<std::pair<KindPtr, bool>> kinds_;  // (kind, storage), in registration order
  uint64_t generation_ = 1;
};

// The kind's own rules beyond its schema (a pod needs containers, names unique, immutable fields
// on update when `old` is given), worded as Kubernetes words them. Errors of the schema
// (ValidateAgainst) are added unless a rule reports the same.
std::vector<FieldError> ValidateObject(const KindInfo& kind,
                                       const json::Value& object,
                                       const json::Value* old,
                                       const std::vector<FieldError>& schema_errors = {});
// The rules about the amounts in a pod's spec: its containers' and those of the pod as a whole.
std::vector<FieldError> ValidatePodAmounts(const json::Value& pod_spec);
// Computed defaults that a schema cannot say (restartPolicy by owner, port protocols, pod template
// labels → job selector, …). Runs after ApplyDefaults.
void DefaultObject(const KindInfo& kind, json::Value& object);

// What Kubernetes knows of pods' templates.
const Schema& PodTemplateSchema();

// The CustomResourceDefinitions that Swell brings: PodGroup, Project, NodePool, TrainingJob,
// PyTorchJob (kubeflow.org/v1 and training.kubedl.io/v1alpha1), ElasticDLJob.
std::vector<json::Value> SwellCrds();
// A CRD object's versions as registrations. kInvalid with causes for a bad CRD.
struct CrdVersion {
  KindInfo kind;
  bool storage = false;
};
Result<std::vector<CrdVersion>> KindsOfCrd(const json::Value& crd);

}  // namespace swell::api
