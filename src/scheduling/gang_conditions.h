// GangConditions: tells Kubernetes' own PodGroups and CompositePodGroups (scheduling.k8s.io) what
// became of the gangs that PodGrouper made of them, in the conditions that their controllers read.
//
// PodGroupInitiallyScheduled, or CompositePodGroupInitiallyScheduled, is True from the first time
// on that the gang's minimum was placed; till then it says why the gang waits. DisruptionTarget is
// True while the gang is preempted. All groups of a tree are told what became of the tree.
//
// - Threads: core executor only.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::scheduling {

// The rule of PodGrouper that makes gangs of them.
inline constexpr std::string_view kGangRule = "kubernetes";

class GangConditions {
 public:
  // `reread` is called with the key of Swell's PodGroup of a gang whose spec has changed. Does
  // nothing on a cluster that does not serve them.
  GangConditions(controllers::Context context,
                 std::function<void(const std::string& group)> reread);

 private:
  void OnUpdate(const json::Value& before, const json::Value& gang);
  void OnGroup(const json::Value& group);
  void QueueParts(const json::Value& group,
                  std::string_view field,
                  const client::Informer& informer,
                  std::string_view prefix);
  json::SharedValue GroupFor(const json::Value& gang, bool composite) const;
  void Reconcile(const std::string& key, const client::WorkQueue::Done& done);

  controllers::Context context_;
  std::function<void(const std::string& group)> reread_;
  client::Informer* gangs_ = nullptr;
  client::Informer* composites_ = nullptr;  // where the cluster serves them
  client::Informer* groups_ = nullptr;
  client::WorkQueue queue_;
  client::Client client_;
};

}  // namespace swell::scheduling
