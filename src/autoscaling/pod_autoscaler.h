// PodAutoscaler: HorizontalPodAutoscalers. The algorithm is the published one (kubernetes.io,
// "Horizontal Pod Autoscaling"): elastic::WishOfTargets says what the metrics ask for,
// elastic::Follow how fast that is done (spec.behavior). What pods use comes from metrics.k8s.io;
// Resource and ContainerResource metrics are all that there are here, others are faults.
//
// Every 15 seconds each autoscaler looks once: its target's scale, the use of the pods that this
// selects, then the target's scale and its own status are written where they differ. What was asked
// for lately is kept in memory: after a restart nothing shrinks for a window.
//
// - Threads: core executor only. The scheme outlives it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "autoscaling/scale_observation.h"
#include "base/callback_scope.h"
#include "elastic/replica_pace.h"
#include "kube/api/schema/scheme.h"
#include "kube/client/event_recorder.h"
#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"

namespace swell::controllers {

class PodAutoscaler {
 public:
  PodAutoscaler(Context context, const api::Scheme& scheme);

 private:
  struct Known : ScaleObservation {
    elastic::PaceState pace;
  };
  struct Round;  // one look of one autoscaler
  using RoundPtr = std::shared_ptr<Round>;

  void Reconcile(const std::string& key, client::WorkQueue::Done done);
  void OnScale(const RoundPtr& round, const Result<json::SharedValue>& scale);
  void AskUse(const RoundPtr& round);
  void OnUse(const RoundPtr& round, const Result<json::Value>& use);
  void FindPods(Round& round) const;
  // As fast as its behavior allows.
  void Settle(const RoundPtr& round, int64_t wish, const std::string& why);
  void Rescale(const RoundPtr& round, int64_t replicas, const std::string& why);
  // A condition that says no, told in an event too; the look is over.
  void Fail(const RoundPtr& round,
            std::string_view condition,
            std::string_view reason,
            const std::string& message);
  void SetCondition(Round& round,
                    std::string_view type,
                    bool value,
                    std::string_view reason,
                    std::string_view message) const;
  void WriteStatus(const RoundPtr& round);

  Context context_;
  const api::Scheme& scheme_;
  client::Informer& autoscalers_;
  client::Informer& pods_;
  client::EventRecorder events_;
  std::map<std::string, Known> known_;  // by the autoscaler's key
  client::WorkQueue queue_;
  client::Client client_;
  CallbackScope scope_;
};

}  // namespace swell::controllers
