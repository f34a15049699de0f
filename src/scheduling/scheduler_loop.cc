#include "scheduling/scheduler_loop.h"

#include <algorithm>

namespace swell::scheduling {

SchedulerLoop::SchedulerLoop(controllers::Context context, sched::Settings settings)
    : context_(std::move(context)),
      scheduler_(settings),
      metrics_(context_.metrics, context_.clock, model_, scheduler_, stats_),
      devices_(context_),
      feeder_(
          context_,
          model_,
          devices_,
          {.changed = [this] { Wake(); },
           .open_binding = [this](const std::string& key) { return executor_.OpenBindingUid(key); },
           .deleted = [this](const std::string& key) { return executor_.OnPodDeleted(key); }}),
      events_(context_, model_, metrics_),
      reporter_(context_,
                events_.recorder(),
                [this](const std::string& pod) { return executor_.FindWaiting(pod); }),
      executor_(context_,
                model_,
                devices_,
                events_,
                reporter_,
                stats_,
                {.changed = [this] { Wake(); },
                 .on_pod = [this](const json::Value& pod) { feeder_.OnPod(pod); },
                 .refused = [this] { RetryLater(); }}) {
  feeder_.Watch();
}

void SchedulerLoop::Start() {
  context_.informers.WhenSynced(scope_.Wrap([this] {
    started_ = true;
    feeder_.RecallPastUse(scheduler_.settings());
    feeder_.RefreshPlacedVolumes();
    devices_.MakeOwnClass();
    Wake();
  }));
}

// Changes of one instant share a cycle: it runs after everything already posted.
void SchedulerLoop::Wake() {
  if (!started_ || cycle_posted_) return;
  cycle_posted_ = true;
  context_.executor.Post(scope_.Wrap([this] {
    cycle_posted_ = false;
    Cycle();
  }));
}

void SchedulerLoop::Cycle() {
  WallTime now = context_.clock.Now();
  const SteadyTime began = context_.clock.Steady();
  sched::CycleResult result = scheduler_.RunCycle(model_, now);
  executor_.Execute(result);
  Report(result);
  metrics_.OnCycle(context_.clock.Steady() - began);
  if (on_cycle_) on_cycle_();
  wake_timer_.Cancel();
  if (result.more && executor_.refused_in_a_row() > 0) {
    // A replica that does not lead is refused at once: without a pause it would decide for ever.
    RetryLater();
  } else if (result.more) {
    Wake();
  } else if (result.wake_at) {
    Duration delay = std::max<Duration>(*result.wake_at - now, std::chrono::milliseconds(10));
    wake_timer_.Start(delay, [this] { Wake(); });
  }
}

void SchedulerLoop::Report(const sched::CycleResult& result) {
  for (const sched::Waiting& waiting : result.waiting) reporter_.Report(waiting);
  reporter_.WriteNominations();
  executor_.WriteGroupTimes(result);
}

// The pause grows while decisions are refused: 20 ms doubling to 5 s.
void SchedulerLoop::RetryLater() {
  const int shift = std::clamp(executor_.refused_in_a_row() - 1, 0, 8);
  retry_timer_.Start(std::chrono::milliseconds(20LL << shift), [this] { Wake(); });
}

}  // namespace swell::scheduling
