// DecisionExecutor: carries out a cycle's decisions: it binds, evicts and nominates pods.
//
// The model treats a decision as done at once. If the API refuses the write, the model forgets the
// decision, and a later cycle decides anew.
//
// A binding whose answer was lost may have been made. It is open until the pod itself shows what
// happened. Until then the pod keeps its place in the model, its eviction is put off, and a later
// pod of the same name is kept out of the model: the late binding could bind that one.
//
// - Threads: core executor only.
// - Ownership: what its constructor takes by reference outlives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/callback_scope.h"
#include "base/strings.h"
#include "kube/controllers/context.h"
#include "sched/model.h"
#include "sched/scheduler.h"
#include "scheduling/device_claims.h"
#include "scheduling/evictions.h"
#include "scheduling/pending_reporter.h"
#include "scheduling/scheduler_metrics.h"
#include "scheduling/scheduling_events.h"
#include "scheduling/volume_waits.h"

namespace swell::scheduling {

class DecisionExecutor {
 public:
  struct Hooks {
    std::function<void()> changed;                       // the model changed: a cycle is due
    std::function<void(const json::Value& pod)> on_pod;  // feeds the pod to the model
    std::function<void()> refused;  // a decision was refused: decide anew, later
  };
  DecisionExecutor(controllers::Context context,
                   sched::Model& model,
                   DeviceClaims& devices,
                   SchedulingEvents& events,
                   PendingReporter& reporter,
                   SchedulerLoopStats& stats,
                   Hooks hooks);

  // When at least that many members of a gang are evicted, one write marks them all.
  void MarkTogether(size_t least) { evictions_.MarkTogether(least); }
  void Execute(const sched::CycleResult& result);
  // Writes into PodGroups since when they are stale, and when they were moved.
  void WriteGroupTimes(const sched::CycleResult& result);

  // The uid of the pod of that key whose binding is open; else null.
  const std::string* OpenBindingUid(const std::string& key) const;
  // The pod was deleted. True: its binding is open, and the executor removes it from the model.
  bool OnPodDeleted(const std::string& key);
  // The pod if it still waits to be placed; else null.
  json::SharedValue FindWaiting(const std::string& key) const;
  int refused_in_a_row() const { return refused_in_a_row_; }

 private:
  struct PutOffEviction {
    sched::Decision decision;
    bool shrinks = false;
  };
  struct OpenBinding {
    std::string pod_uid;
    std::optional<PutOffEviction> eviction;
  };
  struct Batch {
    std::vector<sched::Decision> decisions;
    std::vector<json::SharedValue> pods;             // as they were when the decision was made
    std::vector<std::pair<size_t, Status>> answers;  // not handled yet
    size_t open = 0;                                 // without an answer
    std::unique_ptr<api::RestCall> call;
  };

  std::map<std::string_view, bool> Shrinks(const sched::CycleResult& result) const;
  void Bind(const sched::Decision& decision, const json::SharedValue& pod);
  void GiveDevices(const sched::Decision& decision, const json::SharedValue& pod);
  double ShareOf(const sched::Decision& decision, const json::SharedValue& pod) const;
  void SendBinding(const sched::Decision& decision, const json::SharedValue& pod);
  void SendBatch();
  void OnBatchAnswers(uint64_t number);
  void OnBound(const sched::Decision& decision, const json::SharedValue& pod, const Status& status);
  void ConfirmBinding(const sched::Decision& binding, const Status& why, SteadyTime until);
  void ResolveBinding(const sched::Decision& binding);
  void FailBinding(const sched::Decision& binding, const Status& why);
  void Nominate(const sched::Decision& decision);
  void ClearNomination(const std::string& key);
  void Evict(const sched::Decision& decision, bool shrinks);
  void SendEvictions();
  void OnEvicted();
  void OnEvictionFailed(const sched::Decision& eviction, const Status& why);
  void OnRefused(const sched::Decision& decision, const Status& why);
  void WriteGroupTime(const std::string& key, std::string_view field, WallTime time);

  controllers::Context context_;
  sched::Model& model_;
  DeviceClaims& devices_;
  SchedulingEvents& events_;
  PendingReporter& reporter_;
  SchedulerLoopStats& stats_;
  const Hooks hooks_;
  client::Informer& pods_;
  client::Informer& groups_;
  std::unordered_map<std::string, OpenBinding, StringHash, std::equal_to<>> open_bindings_;
  VolumeWaits volume_waits_;
  Evictions evictions_;
  std::vector<sched::Decision> to_evict_;
  std::deque<std::pair<sched::Decision, json::SharedValue>> to_bind_;  // with a binder only
  std::map<uint64_t, std::shared_ptr<Batch>> batches_;
  uint64_t last_batch_ = 0;
  size_t bindings_sent_ = 0;  // in all batches, without an answer
  bool batch_posted_ = false;
  int refused_in_a_row_ = 0;
  client::Client client_;
  CallbackScope scope_;
};

}  // namespace swell::scheduling
