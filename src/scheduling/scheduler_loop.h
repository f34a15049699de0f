// SchedulerLoop: runs a scheduling cycle when the cluster changed, and has its decisions executed.
//
// ModelFeeder turns watch events into the model, DecisionExecutor writes what a cycle decided,
// SchedulingEvents and PendingReporter report it. The loop decides when the next cycle runs.
//
// - Threads: core executor only.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/callback_scope.h"
#include "base/timer.h"
#include "kube/controllers/context.h"
#include "sched/past_use.h"
#include "sched/room_elsewhere.h"
#include "sched/scheduler.h"
#include "scheduling/decision_executor.h"
#include "scheduling/device_claims.h"
#include "scheduling/model_feeder.h"
#include "scheduling/pending_reporter.h"
#include "scheduling/scheduler_metrics.h"
#include "scheduling/scheduling_events.h"

namespace swell::scheduling {

class SchedulerLoop {
 public:
  SchedulerLoop(controllers::Context context, sched::Settings settings = {});

  // Pods that name one of these schedulers are placed here. Before Start.
  void Serve(const std::vector<std::string>& names) { feeder_.Serve(names); }
  // Records cycles and what leads to them; null: does not. Before Start.
  void Record(sched::Recorder* recorder) {
    model_.Record(recorder);
    scheduler_.Record(recorder);
  }
  // When at least that many members of a gang are evicted, one write marks them all. Before Start.
  void MarkTogether(size_t least) { executor_.MarkTogether(least); }
  void Observe(SchedulerObserver observer) { events_.Observe(std::move(observer)); }
  // Pods for which it returns true wait, as if they had a scheduling gate. Before Start.
  void HoldWhile(std::function<bool(const json::Value& pod)> held) {
    feeder_.HoldWhile(std::move(held));
  }
  // The answer of HoldWhile's function for this pod may have changed.
  void RefreshPod(const json::Value& pod) { feeder_.OnPod(pod); }
  // Called after every cycle.
  void OnCycle(std::function<void()> on_cycle) { on_cycle_ = std::move(on_cycle); }
  // Cycles begin once the informers are in sync.
  void Start();
  const sched::Model& model() const { return model_; }
  std::vector<sched::PastUse> past_use() const { return sched::PastUses(model_); }
  // What the group of that key could have on nodes with other values of the label.
  std::vector<sched::RoomElsewhere> RoomsElsewhere(std::string_view group,
                                                   const std::string& label) {
    return sched::RoomsElsewhere(model_, group, label);
  }
  const SchedulerLoopStats& stats() const { return stats_; }

 private:
  void Wake();
  void Cycle();
  void Report(const sched::CycleResult& result);
  void RetryLater();

  controllers::Context context_;
  sched::Model model_;
  sched::Scheduler scheduler_;
  SchedulerLoopStats stats_;
  SchedulerMetrics metrics_;
  DeviceClaims devices_;
  ModelFeeder feeder_;
  SchedulingEvents events_;
  PendingReporter reporter_;
  DecisionExecutor executor_;
  std::function<void()> on_cycle_;
  bool started_ = false;
  bool cycle_posted_ = false;
  Timer wake_timer_{context_.executor};
  Timer retry_timer_{context_.executor};
  CallbackScope scope_;
};

}  // namespace swell::scheduling
