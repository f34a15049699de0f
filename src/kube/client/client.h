// Client: Kubernetes' API as asynchronous calls over a RestHandler, embedded or remote.
//
// Every call takes a callback that runs on the executor exactly once, with the object or the
// server's Status; never from inside the call itself. After the Client is destroyed no callback
// runs: an owner that keeps its Client as its last member needs no other guard.
//
// - Threads: core executor only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/executor.h"
#include "base/result.h"
#include "json/value.h"
#include "kube/api/rest/rest.h"
#include "kube/api/rest/sink_capabilities.h"

namespace swell::client {

// Names a resource the way its URL does.
struct Resource {
  std::string group;    // "" for the core group
  std::string version;  // "v1"
  std::string plural;   // "pods"
  bool namespaced = true;
  auto operator<=>(const Resource&) const = default;

  // "pods", "pytorchjobs.kubeflow.org".
  std::string GroupResource() const { return group.empty() ? plural : plural + "." + group; }
  std::string ApiVersion() const { return group.empty() ? version : group + "/" + version; }
  // /api/v1/namespaces/NS/pods/NAME/SUB; ns, name and subresource may be empty.
  std::string Path(std::string_view ns,
                   std::string_view name = {},
                   std::string_view subresource = {}) const;
};

// The resources Swell's own components use.
namespace resources {
inline const Resource kPods{"", "v1", "pods", true};
inline const Resource kNodes{"", "v1", "nodes", false};
inline const Resource kServices{"", "v1", "services", true};
inline const Resource kEndpoints{"", "v1", "endpoints", true};
inline const Resource kEvents{"", "v1", "events", true};
inline const Resource kConfigMaps{"", "v1", "configmaps", true};
inline const Resource kSecrets{"", "v1", "secrets", true};
inline const Resource kNamespaces{"", "v1", "namespaces", false};
inline const Resource kServiceAccounts{"", "v1", "serviceaccounts", true};
inline const Resource kPersistentVolumes{"", "v1", "persistentvolumes", false};
inline const Resource kPersistentVolumeClaims{"", "v1", "persistentvolumeclaims", true};
inline const Resource kPriorityClasses{"scheduling.k8s.io", "v1", "priorityclasses", false};
inline const Resource kLeases{"coordination.k8s.io", "v1", "leases", true};
inline const Resource kPodDisruptionBudgets{"policy", "v1", "poddisruptionbudgets", true};
inline const Resource kJobs{"batch", "v1", "jobs", true};
inline const Resource kCronJobs{"batch", "v1", "cronjobs", true};
inline const Resource kDeployments{"apps", "v1", "deployments", true};
inline const Resource kReplicaSets{"apps", "v1", "replicasets", true};
inline const Resource kStatefulSets{"apps", "v1", "statefulsets", true};
inline const Resource kDaemonSets{"apps", "v1", "daemonsets", true};
inline const Resource kControllerRevisions{"apps", "v1", "controllerrevisions", true};
inline const Resource kPodAutoscalers{"autoscaling", "v2", "horizontalpodautoscalers", true};
inline const Resource kReplicationControllers{"", "v1", "replicationcontrollers", true};
inline const Resource kResourceQuotas{"", "v1", "resourcequotas", true};
inline const Resource kStorageClasses{"storage.k8s.io", "v1", "storageclasses", false};
inline const Resource kRuntimeClasses{"node.k8s.io", "v1", "runtimeclasses", false};
inline const Resource kEndpointSlices{"discovery.k8s.io", "v1", "endpointslices", true};
inline const Resource kNetworkPolicies{"networking.k8s.io", "v1", "networkpolicies", true};
inline const Resource kClusterRoles{"rbac.authorization.k8s.io", "v1", "clusterroles", false};
inline const Resource kResourceClaims{"resource.k8s.io", "v1", "resourceclaims", true};
inline const Resource kResourceClaimTemplates{"resource.k8s.io", "v1", "resourceclaimtemplates",
                                              true};
inline const Resource kResourceSlices{"resource.k8s.io", "v1", "resourceslices", false};
inline const Resource kDeviceClasses{"resource.k8s.io", "v1", "deviceclasses", false};
inline const Resource kDeviceTaintRules{"resource.k8s.io", "v1", "devicetaintrules", false};
inline const Resource kWorkloads{"scheduling.k8s.io", "v1beta1", "workloads", true};
inline const Resource kCompositeGangs{"scheduling.k8s.io", "v1alpha3", "compositepodgroups", true};
inline const Resource kGangs{"scheduling.k8s.io", "v1beta1", "podgroups", true};
inline const Resource kPodGroups{"swell.dev", "v1", "podgroups", true};
inline const Resource kProjects{"swell.dev", "v1", "projects", false};
inline const Resource kNodePools{"swell.dev", "v1", "nodepools", false};
inline const Resource kTrainingJobs{"swell.dev", "v1", "trainingjobs", true};
inline const Resource kCrons{"apps.kubedl.io", "v1alpha1", "crons", true};
inline const Resource kPyTorchJobs{"kubeflow.org", "v1", "pytorchjobs", true};
inline const Resource kCrds{"apiextensions.k8s.io", "v1", "customresourcedefinitions", false};
}  // namespace resources

enum class PatchType { kJson, kMerge, kStrategic, kApply };

struct ListOptions {
  std::string label_selector;
  std::string field_selector;
  int64_t limit = 0;
  std::string continue_token;
  std::string resource_version;
  // False: they are left out of the answer's objects, which others may share.
  bool managed_fields = true;
};

struct DeleteOptions {
  int64_t grace_seconds = -1;  // -1: the object's own
  std::string propagation;     // "", Background, Foreground, Orphan
  std::string precondition_uid;
};

using api::ObjectList;
using ObjectCallback = std::function<void(Result<json::SharedValue>)>;
using ListCallback = std::function<void(Result<ObjectList>)>;
using ResponseCallback = std::function<void(Result<api::RestResponse>)>;

// A stream's consumer; see api::RestSink. on_end runs once, last.
struct StreamCallbacks {
  std::function<void(int status)> on_start;
  std::function<void(const api::Chunk&)> on_chunk;
  // Set: events of watches may come as documents; see api::ObjectSink.
  std::function<void(std::string_view type, const json::SharedValue&)> on_object;
  std::function<void(const Status&)> on_end;
};

// A call that can be given up: destroying it means its callbacks do not run any more.
class Stream {
 public:
  virtual ~Stream() = default;
};

class Client {
 public:
  // `user` is trusted in-process; empty where the transport carries credentials. What an `urgent`
  // one asks goes before others; see api::RestRequest.
  Client(Executor& executor,
         std::shared_ptr<api::RestHandler> server,
         api::UserInfo user,
         std::string user_agent,
         bool urgent = false);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // See api::RestHandler.
  bool in_order() const { return server_->capabilities().in_order; }

  void Create(const Resource& resource,
              std::string_view ns,
              const json::Value& object,
              ObjectCallback done);
  void Get(const Resource& resource,
           std::string_view ns,
           std::string_view name,
           ObjectCallback done);
  void List(const Resource& resource,
            std::string_view ns,
            const ListOptions& options,
            ListCallback done);
  void Update(const Resource& resource,
              const json::Value& object,
              ObjectCallback done,
              std::string_view subresource = {});
  void Patch(const Resource& resource,
             std::string_view ns,
             std::string_view name,
             PatchType type,
             const json::Value& patch,
             ObjectCallback done,
             std::string_view subresource = {});
  // Where deletion is gradual, some servers answer with the metadata alone.
  void Delete(const Resource& resource,
              std::string_view ns,
              std::string_view name,
              const DeleteOptions& options,
              ObjectCallback done);
  // POST to a subresource: binding, eviction, token.
  void CreateSubresource(const Resource& resource,
                         std::string_view ns,
                         std::string_view name,
                         std::string_view subresource,
                         const json::Value& object,
                         ObjectCallback done);

  // Any request; an HTTP error status becomes the Status its body says.
  void Call(api::RestRequest request, ResponseCallback done);
  // Any streaming request; a plain answer is delivered as one chunk.
  [[nodiscard]] std::unique_ptr<Stream> Open(api::RestRequest request, StreamCallbacks callbacks);

  Executor& executor() { return executor_; }

 private:
  class Pending;
  class Sink;
  class ListSink;
  struct State;

  void Send(api::RestRequest request, ObjectCallback done);
  // Hands the request over; `make` makes the sink of a call's number.
  template <class Make>
  void Handle(api::RestRequest request, Make&& make);

  Executor& executor_;
  std::shared_ptr<api::RestHandler> server_;
  api::UserInfo user_;
  std::string user_agent_;
  bool urgent_;
  std::shared_ptr<State> state_;
};

// The Status that an error body says, falling back to the HTTP status.
Status StatusFromResponse(int http_status, std::string_view body);

}  // namespace swell::client
