// NodeLifecycle: detects silent nodes, taints them, evicts their pods, and removes what a dead node
// can no longer remove itself.
//
//   silent for `grace`      Ready and pressure conditions become Unknown, its pods unready
//   Ready False or Unknown  taints not-ready or unreachable: NoSchedule and NoExecute
//   spec.unschedulable      taint unschedulable: NoSchedule
//   NoExecute taints        pods that do not tolerate them (any longer) are deleted with an event
//   deleting, node lost     the pod object is removed after its grace period, so that its job can
//                           continue; a node that returns stops the pod's processes
//   node object gone        its pods are removed
//
// A node is alive when its lease or its Ready heartbeat changes, by this process's clock. Other
// machines' clocks do not matter, and a new controller gives every node a full grace period.
//
// - Threads: core executor only.
#pragma once

#include <map>
#include <string>

#include "kube/client/event_recorder.h"
#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::controllers {

struct NodeLifecycleOptions {
  Duration grace = std::chrono::seconds(40);
  // How long pods that do not say otherwise stay bound to a lost node. Pods carry Kubernetes'
  // default of 300 s as a toleration; a toleration of exactly that is taken as "not said".
  Duration eviction_delay = std::chrono::seconds(300);
};

class NodeLifecycle {
 public:
  NodeLifecycle(Context context, NodeLifecycleOptions options);

 private:
  struct NodeSignals {
    std::string lease, heartbeat;
    SteadyTime at;
  };
  using Done = client::WorkQueue::Done;

  void WatchNodes();
  void RecordSignal(const std::string& node, std::string NodeSignals::*what, std::string value);
  void ReconcileNode(const std::string& name, Done done);
  void PatchNode(const json::Value& node,
                 json::Value conditions,
                 json::Value taints,
                 Duration requeue_after,
                 Done done);
  void ReconcilePod(const std::string& key, Done done);
  void Evict(const json::SharedValue& pod, const Done& done);
  void RemovePod(const json::SharedValue& pod, std::string_view why, Done done);
  void MarkNotReady(const json::SharedValue& pod, Duration requeue_after, Done done);
  void TouchPodsOf(const std::string& node);

  Context context_;
  NodeLifecycleOptions options_;
  client::Informer& nodes_;
  client::Informer& leases_;
  client::Informer& pods_;
  std::map<std::string, NodeSignals> signals_;
  std::map<std::string, SteadyTime> gone_;  // nodes that pods name and nobody knows: since when
  client::EventRecorder events_;
  client::WorkQueue node_queue_;
  client::WorkQueue pod_queue_;
  client::Client client_;
};

}  // namespace swell::controllers
