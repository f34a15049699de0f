// PodAutoscaler: HorizontalPodAutoscalers. The algorithm is the published one (kubernetes.io,
// "Horizontal Pod Autoscaling"): elastic::ProposeReplicas computes the number of replicas that the
// metrics call for, elastic::Follow limits how fast it changes (spec.behavior). Usage comes from
// metrics.k8s.io. Only Resource and ContainerResource metrics are supported; others are reported as
// faults.
//
// Every 15 seconds each autoscaler reads its target's scale and the usage of the pods that the
// scale selects. Then it writes the scale and its own status where they differ. Recent
// recommendations are kept in memory, so nothing shrinks for one stabilization window after a
// restart.
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

namespace swell::autoscaling {

class PodAutoscaler {
 public:
  PodAutoscaler(controllers::Context context, const api::Scheme& scheme);

 private:
  struct Known : ScaleObservation {
    elastic::PaceState pace;
  };
  struct Round;  // one look of one autoscaler
  using RoundPtr = std::shared_ptr<Round>;

  void Reconcile(const std::string& key, client::WorkQueue::Done done);
  void OnScale(const RoundPtr& round, const Result<json::SharedValue>& scale);
  void ReadUse(const RoundPtr& round);
  void OnUse(const RoundPtr& round, const Result<json::Value>& use);
  void FindPods(Round& round) const;
  // Changes the number of replicas as fast as spec.behavior allows.
  void ApplyBehavior(const RoundPtr& round, int64_t proposed, const std::string& why);
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

  controllers::Context context_;
  const api::Scheme& scheme_;
  client::Informer& autoscalers_;
  client::Informer& pods_;
  client::EventRecorder events_;
  std::map<std::string, Known> known_;  // by the autoscaler's key
  client::WorkQueue queue_;
  client::Client client_;
  CallbackScope scope_;
};

}  // namespace swell::autoscaling
