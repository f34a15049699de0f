// NodeAgent: one node of the cluster. Registers the Node, keeps its lease and status fresh, and
// gives every pod bound to it a PodWorker.
//
// Pods come from an informer that watches spec.nodeName=NAME, or from the agent's NodeFleet.
//
// A restarted agent asks its runtime what still runs and adopts it; what belongs to no pod of the
// API any more is removed.
//
// - Threads: core executor only.
// - Ownership: executor, clock, runtime and names outlive the agent. Destroying an agent leaves its
//   pods running.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/callback_scope.h"
#include "base/timer.h"
#include "kube/client/client.h"
#include "kube/client/event_recorder.h"
#include "kube/client/informer.h"
#include "kube/node/devices/device_slice.h"
#include "kube/node/health/node_health.h"
#include "kube/node/network/names.h"
#include "kube/node/pod/pod_worker.h"
#include "kube/node/runtime/runtime.h"
#include "kube/node/spec/node_config.h"

namespace swell::node {

// What pods are given to save when their node shuts down: the usual grace period of a pod.
inline constexpr Duration kShutdownGrace = std::chrono::seconds(30);

struct AgentPlugs {
  Executor& executor;
  Clock& clock;
  std::shared_ptr<api::RestHandler> server;
  Runtime& runtime;
  ServiceNames* names = nullptr;  // may be null: hosts files have only the pods' own entries
  uint64_t seed = 1;
  HealthSource* health = nullptr;  // may be null: the node is not checked
};

class NodeAgent final : public PodHost {
 public:
  NodeAgent(AgentPlugs plugs, NodeConfig config);
  ~NodeAgent() override;

  // Registers the node and finds the pods that run. With `own_pods` the agent watches its pods;
  // without, its fleet calls OnPod and OnPodDeleted.
  void Start(bool own_pods = true);

  void OnPod(const json::SharedValue& pod);
  void OnPodDeleted(const json::SharedValue& pod);
  // Every pod has been reported once: pods that only the runtime knows are removed.
  void OnPodsSynced();

  // Ends the pods as StopWithNode of each says, and starts no more. `done` runs once, when none of
  // them runs. The agent is of no use after it.
  void StopPods(Duration limit, std::function<void()> done);

  const std::string& name() const { return config_.name; }
  bool registered() const { return registered_; }
  // By "namespace/name"; null if this node has no such pod.
  json::SharedValue FindPod(const std::string& key) const;
  std::vector<json::Value> Pods() const;
  const PodWorker* FindWorker(const std::string& uid) const;
  size_t worker_count() const { return workers_.size(); }

  // PodHost.
  Executor& executor() override { return plugs_.executor; }
  Clock& clock() override { return plugs_.clock; }
  client::Client& client() override { return client_; }
  Runtime& runtime() override { return plugs_.runtime; }
  ServiceNames* names() override { return plugs_.names; }
  const NodeConfig& config() const override { return config_; }
  const Amounts& allocatable() const override { return allocatable_; }
  AdmitResult Admit(const PodWorker& pod) override;
  Room RoomFor(const PodWorker& pod, const Amounts& wanted) const override;
  bool IsMountedBeside(const PodWorker& pod, const std::string& claim) const override;
  std::string GpuDeviceId(int index) const override;
  int64_t GpuMemoryMib() const override;
  void Event(const json::Value& pod,
             std::string_view type,
             std::string_view reason,
             std::string_view message) override;
  void OnResourcesFreed() override;
  void OnWorkerDone(const std::string& uid) override;

 private:
  // What the other pods hold, with those that are ending counted apart; `pods` is their number.
  struct Load {
    Amounts used, leaving;
  };
  Load LoadBeside(const PodWorker& pod) const;
  json::Value NodeObject() const;
  json::Object NodeStatus() const;
  void Register();
  void PatchExisting();
  void SendNodeStatus();
  void RenewLease();
  void CreateLease();
  void OnHealthRound(const std::vector<NodeHealth::Change>& changes, bool first);
  void WriteUnhealthyGpus();
  void PublishGpus();
  void ForgetStaleConditions(const json::Value& node);
  void OnPodsFound(Result<std::vector<FoundPod>> found);
  void StartWorkers();
  void StartWorker(const json::SharedValue& pod);
  void ReleaseEnded(const json::SharedValue& pod);
  void UpdateExtendedResources(const json::Value& node);
  bool NodeReadSince(const std::string& uid);
  int64_t Gpus() const;
  std::set<int> BadGpus() const;
  void RetryAdmissions();
  void CheckPodsStopped();

  AgentPlugs plugs_;
  NodeConfig config_;
  Amounts capacity_;  // of the configuration, and extended resources of the Node's status
  Amounts allocatable_;
  bool registered_ = false;
  int register_failures_ = 0;
  json::SharedValue lease_;  // as the server has it; null if not known
  Timer register_timer_, lease_timer_, status_timer_;
  bool health_unsent_ = false;          // the last status that was sent lacks a round's result
  std::unique_ptr<NodeHealth> health_;  // null: the node is not checked
  std::optional<std::set<int>> unhealthy_written_;  // the GPUs that the Node's annotation names
  bool retry_posted_ = false;

  std::function<void()> on_pods_stopped_;  // after StopPods
  bool stopping_ = false;

  bool pods_found_ = false;
  bool pods_synced_ = false;
  std::map<std::string, FoundPod> found_;                      // by uid, not adopted yet
  int orphans_ = 0;                                            // found, and being removed
  std::map<std::string, json::SharedValue> unstarted_;         // by uid, before StartWorkers
  std::map<std::string, json::SharedValue> pods_;              // by "ns/name"
  std::map<std::string, std::shared_ptr<PodWorker>> workers_;  // by uid
  std::vector<std::string> order_;                             // uids in order of arrival
  // Pods that request resources that the configuration does not name: was the Node read since?
  std::map<std::string, bool> node_read_since_;

  std::unique_ptr<client::EventRecorder> events_;
  std::unique_ptr<client::Informer> informer_;
  CallbackScope scope_;
  // Destroyed first, so that no callback reaches a half destroyed agent. The node's heartbeat has a
  // client of its own: it must not wait for the writes of pods.
  client::Client node_client_;
  client::Client client_;
  std::string node_uid_;  // empty: not registered yet
  DeviceSlice slice_{plugs_.executor, client_, config_};
};

// The user a node agent acts as: system:node:NAME of group system:nodes.
api::UserInfo NodeUser(std::string_view node);

}  // namespace swell::node
