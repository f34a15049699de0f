// swell export, import: what people made in a cluster, as manifests in an order in which another
// cluster can take them in; between an embedded cluster and Kubernetes, in both directions.
#include <algorithm>
#include <set>

#include "base/file.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/kinds.h"
#include "cli/manifests.h"
#include "json/yaml.h"
#include "kube/api/crd/crds.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/project.h"
#include "kube/api/schema/scheme.h"

namespace swell::cli {
namespace {

constexpr Duration kServedLimit = std::chrono::seconds(30);

// What a cluster makes by itself, or what belongs to its machines.
constexpr std::string_view kNeverTaken[] = {
    "events",
    "events.events.k8s.io",
    "nodes",
    "endpoints",
    "endpointslices.discovery.k8s.io",
    "leases.coordination.k8s.io",
    "controllerrevisions.apps",
    "persistentvolumes",
    "componentstatuses",
    "certificatesigningrequests.certificates.k8s.io",
    "csinodes.storage.k8s.io",
    "podcertificaterequests.certificates.k8s.io",
    "resourceslices.resource.k8s.io",
    "storageversionmigrations.storagemigration.k8s.io",
    "csistoragecapacities.storage.k8s.io",
    "volumeattachments.storage.k8s.io",
    "apiservices.apiregistration.k8s.io",
    "flowschemas.flowcontrol.apiserver.k8s.io",
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    "ipaddresses.networking.k8s.io",
    "servicecidrs.networking.k8s.io"};

// What others name comes before them; what is not listed comes where "*" is.
constexpr std::string_view kOrder[] = {"customresourcedefinitions.apiextensions.k8s.io",
                                       "namespaces",
                                       "priorityclasses.scheduling.k8s.io",
                                       "storageclasses.storage.k8s.io",
                                       "nodepools.swell.dev",
                                       "topologies.swell.dev",
                                       "projects.swell.dev",
                                       "resourcequotas",
                                       "limitranges",
                                       "serviceaccounts",
                                       "secrets",
                                       "configmaps",
                                       "clusterroles.rbac.authorization.k8s.io",
                                       "roles.rbac.authorization.k8s.io",
                                       "clusterrolebindings.rbac.authorization.k8s.io",
                                       "rolebindings.rbac.authorization.k8s.io",
                                       "persistentvolumeclaims",
                                       "services",
                                       "poddisruptionbudgets.policy",
                                       "networkpolicies.networking.k8s.io",
                                       "*",
                                       "podgroups.swell.dev",
                                       "deployments.apps",
                                       "statefulsets.apps",
                                       "daemonsets.apps",
                                       "cronjobs.batch",
                                       "jobs.batch",
                                       "pods"};

size_t RankOf(const std::string& resource) {
  const auto* found = std::find(std::begin(kOrder), std::end(kOrder), resource);
  if (found == std::end(kOrder)) found = std::find(std::begin(kOrder), std::end(kOrder), "*");
  return static_cast<size_t>(found - std::begin(kOrder));
}

bool IsSystemNamespace(std::string_view ns) {
  return ns.starts_with("kube-") || ns == "swell-system";
}

// Among the system's own objects: rules by which other operators' pods are grouped.
bool IsPeoples(const std::string& resource, const json::Value& object) {
  return resource == "configmaps" && api::KeyOf(object) == "swell-system/swell-grouping";
}

bool MadeBySwell(const std::string& resource, const json::Value& object) {
  auto named_so = [&object](const std::vector<json::Value>& ours) {
    return std::any_of(ours.begin(), ours.end(), [&object](const json::Value& one) {
      return api::Name(one) == api::Name(object);
    });
  };
  if (resource == "customresourcedefinitions.apiextensions.k8s.io") {
    return named_so(api::SwellCrds());
  }
  if (resource == "clustertrainingruntimes.trainer.kubeflow.org") {
    return named_so({api::TorchTrainingRuntime()});
  }
  return resource == "priorityclasses.scheduling.k8s.io" && named_so(api::SwellPriorityClasses());
}

// Whether every cluster has it anyway.
bool IsUsual(const std::string& resource, const json::Value& object) {
  const std::string_view name = api::Name(object);
  const std::string_view ns = api::Namespace(object);
  if (!api::Label(object, "kubernetes.io/bootstrapping").empty()) return true;
  for (const char* label : {"app.kubernetes.io/managed-by", "app.kubernetes.io/part-of"}) {
    if (api::Label(object, label) == "swell") return true;
  }
  if (name.starts_with("system:") || name.starts_with("system-")) return true;
  if (resource == "namespaces") return IsSystemNamespace(name) || name == "default";
  if (resource == "serviceaccounts") return name == "default";
  if (resource == "configmaps") return name == "kube-root-ca.crt";
  if (resource == "services") return ns == "default" && name == "kubernetes";
  if (resource == "storageclasses.storage.k8s.io") return name == "standard";
  if (resource == "secrets") {
    return json::GetString(object, {"type"}) == "kubernetes.io/service-account-token";
  }
  return MadeBySwell(resource, object);
}

// Made again by what made it, or about to go.
bool FollowsFromOthers(const json::Value& object) {
  return api::ControllerOf(object).has_value() || api::IsDeleting(object) ||
         !api::Annotation(object, api::keys::kMadeForPods).empty();
}

// Work that has ended would run once more.
bool HasEnded(const std::string& resource, const json::Value& object) {
  if (resource == "pods") return api::HasEnded(object);
  for (const char* type : {"Complete", "Succeeded", "Failed"}) {
    if (api::ConditionIsTrue(object, type)) return true;
  }
  return false;
}

void CleanMetadata(json::Value& object) {
  json::Object kept;
  for (const char* field : {"name", "namespace", "labels", "annotations"}) {
    if (const json::Value* value = json::Find(object, {"metadata", field})) kept[field] = *value;
  }
  if (auto* annotations = kept.if_contains("annotations");
      annotations && annotations->is_object()) {
    std::vector<std::string> gone;
    for (const auto& [key, value] : annotations->get_object()) {
      const std::string_view name(key.data(), key.size());
      const bool of_this_run = name.starts_with("pv.kubernetes.io/") ||
                               name.starts_with("volume.kubernetes.io/") ||
                               name.starts_with("deployment.kubernetes.io/") ||
                               name.starts_with("swell.dev/preempted") ||
                               name == api::keys::kGpuDevices || name == api::keys::kGpuShare ||
                               name == api::keys::kRestarts || name == api::keys::kStopRequested;
      if (of_this_run) gone.emplace_back(name);
    }
    for (const std::string& name : gone) json::StableErase(annotations->get_object(), name);
    if (annotations->get_object().empty()) json::StableErase(kept, "annotations");
  }
  json::Set(object, {"metadata"}, std::move(kept));
}

void CleanSpec(const std::string& resource, json::Value& object) {
  json::Remove(object, {"status"});
  if (resource == "namespaces") json::Remove(object, {"spec"});
  if (resource == "persistentvolumeclaims") json::Remove(object, {"spec", "volumeName"});
  if (resource == "serviceaccounts") json::Remove(object, {"secrets"});
  if (resource == "services" && json::GetString(object, {"spec", "clusterIP"}) != "None") {
    for (const char* field : {"clusterIP", "clusterIPs", "healthCheckNodePort"}) {
      json::Remove(object, {"spec", field});
    }
  }
  if (resource == "jobs.batch" && !json::GetBool(object, {"spec", "manualSelector"}, false)) {
    json::Remove(object, {"spec", "selector"});
    for (const char* label : {"controller-uid", "batch.kubernetes.io/controller-uid"}) {
      json::Remove(object, {"spec", "template", "metadata", "labels", label});
      json::Remove(object, {"metadata", "labels", label});
    }
  }
  if (resource != "pods") return;
  // Debug containers cannot be created with their pod; what a class is worth, each cluster says.
  for (const char* field : {"nodeName", "ephemeralContainers", "priority", "preemptionPolicy"}) {
    json::Remove(object, {"spec", field});
  }
  // The token's volume, which admission adds anew.
  auto drop = [](json::Value* list) {
    if (list == nullptr || !list->is_array()) return;
    json::Array& all = list->get_array();
    for (size_t i = all.size(); i-- > 0;) {
      if (!json::GetString(all[i], {"name"}).starts_with("kube-api-access-")) continue;
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
    }
  };
  drop(json::FindMutable(object, {"spec", "volumes"}));
  for (const char* containers : {"containers", "initContainers"}) {
    json::Value* list = json::FindMutable(object, {"spec", containers});
    if (list == nullptr || !list->is_array()) continue;
    for (json::Value& one : list->get_array()) drop(json::FindMutable(one, {"volumeMounts"}));
  }
}

// "v2" of "v2beta2", in which a kind looks as it does in "v2".
std::string_view StableVersion(std::string_view version) {
  return version.substr(0, version.find_first_of("ab"));
}

class ExportAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Text("-o,--output", &file_, "FILE", "output file (default: standard output)");
    flags.Switch("--secrets", &secrets_, "include Secrets, in plain text");
    flags.Switch("--ended", &ended_,
                 "include jobs and pods that have ended, which would run again");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (!words.empty()) return Misuse(StrCat("unexpected ", Quote(words[0])));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(Kinds * kinds, session.ServerKinds());
    SWELL_ASSIGN_OR_RETURN(std::vector<Kind> all, kinds->All());
    const std::string only = session.global().ns;
    std::set<std::string> seen;
    std::erase_if(all, [&](const Kind& kind) { return !Takes(kind, !only.empty(), seen); });
    std::stable_sort(all.begin(), all.end(), [](const Kind& a, const Kind& b) {
      return RankOf(a.GroupResource()) < RankOf(b.GroupResource());
    });
    std::string out;
    Status first_forbidden;
    bool listed = false;
    for (const Kind& kind : all) {
      auto found = api->List(kind.resource, only);
      if (!found.ok() && found.status().code() == Code::kNotFound) continue;
      if (!found.ok() && found.status().code() == Code::kForbidden) {
        if (only.empty()) return WholeClusterIsForbidden(found.status());
        if (forbidden_.empty()) first_forbidden = found.status();
        forbidden_.push_back(kind.GroupResource());
        continue;
      }
      if (!found.ok()) return found.status().WithContext(kind.GroupResource());
      listed = true;
      for (const json::SharedValue& object : Sorted(std::move(*found))) {
        AddObject(kind, *object, out);
      }
    }
    if (!listed && !forbidden_.empty()) return first_forbidden;
    if (!forbidden_.empty()) {
      left_.push_back(StrCat("what you may not list (", Join(forbidden_, ", "), ")"));
    }
    if (file_.empty()) {
      session.Out(out);
    } else {
      SWELL_RETURN_IF_ERROR(WriteFileAtomically(file_, out, secrets_ ? 0600 : 0644));
    }
    session.ErrLine(StrCat(count_, " objects exported",
                           left_.empty() ? "" : "; left out: ", Join(left_, ", ")));
    return 0;
  }

 private:
  static Status WholeClusterIsForbidden(const Status& status) {
    return Status(status.code(),
                  StrCat("only administrators export the whole cluster: ", status.message(),
                         ". To export what you may read in one namespace: swell export -n "
                         "NAMESPACE"));
  }

  bool Takes(const Kind& kind, bool one_namespace, std::set<std::string>& seen) {
    const std::string resource = kind.GroupResource();
    auto can = [&kind](std::string_view verb) {
      return std::find(kind.verbs.begin(), kind.verbs.end(), verb) != kind.verbs.end();
    };
    if (!can("list") || !can("create") || (one_namespace && !kind.resource.namespaced))
      return false;
    if (std::find(std::begin(kNeverTaken), std::end(kNeverTaken), resource) !=
        std::end(kNeverTaken)) {
      return false;
    }
    if (resource == "secrets" && !secrets_) {
      left_.emplace_back("Secrets (--secrets)");
      return false;
    }
    return seen.insert(resource).second;
  }

  // Parents before the projects in them.
  static std::vector<json::SharedValue> Sorted(std::vector<json::SharedValue> objects) {
    std::set<std::string, std::less<>> placed, known;
    for (const json::SharedValue& object : objects) known.insert(std::string(api::Name(*object)));
    std::vector<json::SharedValue> out;
    for (size_t round = 0; !objects.empty() && round <= known.size(); ++round) {
      const size_t before = out.size();
      std::vector<json::SharedValue> later;
      for (json::SharedValue& object : objects) {
        const std::string_view parent = api::ParentOfProject(*object);
        if (parent.empty() || placed.contains(parent) || !known.contains(parent)) {
          placed.insert(std::string(api::Name(*object)));
          out.push_back(std::move(object));
        } else {
          later.push_back(std::move(object));
        }
      }
      objects = std::move(later);
      if (out.size() == before) break;
    }
    // A circle of parents is told by the cluster that takes it in.
    for (json::SharedValue& object : objects) out.push_back(std::move(object));
    return out;
  }

  void AddObject(const Kind& kind, const json::Value& object, std::string& out) {
    const std::string resource = kind.GroupResource();
    const bool systems = IsSystemNamespace(api::Namespace(object)) && !IsPeoples(resource, object);
    if (systems || IsUsual(resource, object) || FollowsFromOthers(object)) return;
    // Credentials are not exported, so another user with this name would get the role.
    if (!api::Label(object, api::keys::kUserSecret).empty()) {
      if (users_left_++ == 0) left_.emplace_back("users and their roles");
      return;
    }
    if (!ended_ && HasEnded(resource, object)) {
      if (ended_left_++ == 0) left_.emplace_back("work that has ended (--ended)");
      return;
    }
    json::Value clean = object;
    json::Set(clean, {"apiVersion"}, kind.resource.ApiVersion());
    json::Set(clean, {"kind"}, kind.kind);
    CleanMetadata(clean);
    CleanSpec(resource, clean);
    out += StrCat("---\n", json::PrintYaml(clean));
    ++count_;
  }

  std::string file_;
  bool secrets_ = false;
  bool ended_ = false;
  size_t count_ = 0;
  size_t ended_left_ = 0;
  size_t users_left_ = 0;
  std::vector<std::string> left_, forbidden_;
};

class ImportAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.List("-f,--filename", &files_, "PATH", "a file, a directory, or - for standard input");
    flags.Switch("--dry-run", &options_.dry_run, "show what would change");
    flags.Switch("--overwrite", &overwrite_, "update existing objects (default: keep them)");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    files_.insert(files_.end(), words.begin(), words.end());
    if (files_.empty())
      return Misuse("expected a file: swell import all.yaml, or -f - for standard input");
    SWELL_ASSIGN_OR_RETURN(std::vector<Manifest> manifests, ReadManifests(session, files_, false));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    kinds_ = std::make_unique<Kinds>(*api);
    int failed = 0;
    for (const Manifest& manifest : manifests) {
      const Status done = One(session, *api, manifest);
      if (done.ok()) continue;
      if (done.code() == Code::kUnavailable) return done;
      session.ErrLine(StrCat("swell: ", manifest.source, ": ", ErrorText(done)));
      ++failed;
    }
    return failed > 0 ? 1 : 0;
  }

 private:
  // A definition that was just made is not served at once.
  Result<Kind> KindOf(Session& session, Api& api, const json::Value& object) {
    const std::string_view version = api::ApiVersionOf(object);
    const std::string_view kind = api::KindOf(object);
    auto found = FindOrNear(version, kind);
    const WallTime since = session.Now();
    while (!found.ok() && made_kinds_ && found.status().code() == Code::kNotFound &&
           session.Now() - since < kServedLimit) {
      if (!api.Pause(std::chrono::milliseconds(200))) break;
      kinds_ = std::make_unique<Kinds>(api);
      found = FindOrNear(version, kind);
    }
    return found;
  }

  // A release before or after the one that wrote the file has the kind as a beta, or no more so.
  Result<Kind> FindOrNear(std::string_view api_version, std::string_view kind) {
    auto found = kinds_->FindGvk(api_version, kind);
    if (found.ok() || found.status().code() != Code::kNotFound) return found;
    SWELL_ASSIGN_OR_RETURN(const std::vector<Kind> all, kinds_->All());
    const api::GroupVersionKind wanted = api::ParseGvk(api_version, kind);
    for (const Kind& one : all) {
      if (one.kind == kind && one.resource.group == wanted.group &&
          StableVersion(one.resource.version) == StableVersion(wanted.version)) {
        return one;
      }
    }
    return found;
  }

  Status One(Session& session, Api& api, const Manifest& manifest) {
    json::Value object = manifest.object;
    SWELL_ASSIGN_OR_RETURN(const Kind kind, KindOf(session, api, object));
    json::Set(object, {"apiVersion"}, kind.resource.ApiVersion());
    const std::string name(api::Name(object));
    if (name.empty()) return Status(Code::kInvalid, "metadata.name: Required value");
    std::string ns;
    if (kind.resource.namespaced) {
      ns = api::Namespace(object);
      if (ns.empty()) ns = session.Namespace();
      json::Set(object, {"metadata", "namespace"}, ns);
    }
    const std::string words = StrCat(kind.SingularName(), "/", name);
    const std::string note = options_.dry_run ? " (server dry run)" : "";
    auto made = api.Create(kind.resource, ns, object, options_);
    if (made.ok()) {
      made_kinds_ = made_kinds_ || kind.kind == "CustomResourceDefinition";
      session.OutLine(StrCat(words, " created", note));
      return Status::Ok();
    }
    if (made.status().code() != Code::kAlreadyExists) return made.status().WithContext(words);
    if (!overwrite_) {
      session.OutLine(StrCat(words, " kept: it already exists"));
      return Status::Ok();
    }
    auto patched = api.Patch(kind.resource, ns, name, client::PatchType::kMerge, object, options_);
    if (!patched.ok()) return patched.status().WithContext(words);
    session.OutLine(StrCat(words, " configured", note));
    return Status::Ok();
  }

  WriteOptions options_{.dry_run = false, .field_manager = "swell-import", .field_validation = ""};
  std::vector<std::string> files_;
  bool overwrite_ = false;
  bool made_kinds_ = false;
  std::unique_ptr<Kinds> kinds_;
};

}  // namespace

Command ExportCommandSpec() {
  Command command;
  command.name = "export";
  command.group = "Change";
  command.summary = "Write the manifests of what users created, for swell import.";
  command.examples = {
      {"Move from the cluster of this machine to Kubernetes",
       "swell export -o all.yaml && swell import all.yaml --kubeconfig ~/.kube/config"},
      {"One namespace, Secrets included", "swell export -n vision --secrets -o vision.yaml"}};
  command.notes =
      "Not included: status, uids, owners, objects made by controllers, users of the embedded "
      "cluster and their roles, and data in volumes.";
  command.make = Makes<ExportAction>();
  return command;
}

Command ImportCommandSpec() {
  Command command;
  command.name = "import";
  command.group = "Change";
  command.summary =
      "Create the objects of a file written by swell export. Existing objects are kept.";
  command.usage = "FILE...";
  command.examples = {
      {"Show what would be created", "swell import all.yaml --dry-run"},
      {"Create the objects", "swell import all.yaml"},
      {"From one cluster to another", "swell export | swell import - --kubeconfig ~/.kube/config"}};
  command.make = Makes<ImportAction>();
  return command;
}

}  // namespace swell::cli
