// GangConditions: tells Kubernetes' own PodGroups (scheduling.k8s.io) what became of the gangs that
// PodGrouper made of them, in the conditions that their controllers read.
//
// PodGroupInitiallyScheduled is True from the first time on that the gang's minimum was placed;
// till then it says why the gang waits. DisruptionTarget is True while the gang is preempted.
//
// - Threads: core executor only.
#pragma once

#include <functional>
#include <string>

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
  void Reconcile(const std::string& key, const client::WorkQueue::Done& done);

  controllers::Context context_;
  std::function<void(const std::string& group)> reread_;
  client::Informer* gangs_ = nullptr;
  client::Informer* groups_ = nullptr;
  client::WorkQueue queue_;
  client::Client client_;
};

}  // namespace swell::scheduling
