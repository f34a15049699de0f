// shrink: takes members that running gangs have beyond their minimum, by the rules of reclaim and
// then of preempt. No gang is stopped by it.
#include "base/strings.h"
#include "sched/actions/preempt.h"
#include "sched/actions/reclaim.h"
#include "sched/actions/registry.h"

namespace swell::sched {
namespace {

class Shrink final : public Action {
 public:
  std::string_view Name() const override { return "shrink"; }
  std::string_view Event() const override { return "Preempted"; }
  std::string Reason(const CycleContext& context,
                     const EvictionPlan& evictions,
                     PodId victim) const override {
    const State& state = context.state;
    const QueueId winner = state.groups[evictions.beneficiary].queue;
    const QueueId loser = state.groups[state.pods[victim].group].queue;
    return StrCat("a member beyond its minimum gives way; ",
                  winner != loser ? FairnessReason(context, evictions, victim)
                                  : PriorityReason(context, evictions, victim));
  }
  void Run(CycleContext& context) const override {
    State& state = context.state;
    if (state.counts.surplus_groups == 0) return;
    const auto eligible = [&state](GroupId id) {
      return state.counts.known_queues > 1 || AnyBelow(state, state.groups[id]);
    };
    ForWaiters(context, {.eligible = eligible}, [&](const WaitingJob& job) {
      const SearchOutcome found = ReclaimFor(context, *this, job, Victims::kSurplus);
      return found != SearchOutcome::kNothing ? found
                                              : PreemptFor(context, *this, job, Victims::kSurplus);
    });
  }
};

}  // namespace

const Action& ShrinkAction() {
  static const Shrink action;
  return action;
}

}  // namespace swell::sched
