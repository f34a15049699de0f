// preempt: inside a queue, a job takes from preemptible work of strictly lower priority.
#include "sched/actions/preempt.h"

#include "base/strings.h"
#include "sched/actions/registry.h"
#include "sched/placement/gang.h"
#include "sched/queues/queue_order.h"

namespace swell::sched {
namespace {

class Preempt final : public Action {
 public:
  std::string_view Name() const override { return "preempt"; }
  std::string_view Event() const override { return "Preempted"; }
  std::string Reason(const CycleContext& context,
                     const EvictionPlan& evictions,
                     PodId victim) const override {
    return PriorityReason(context, evictions, victim);
  }
  void Run(CycleContext& context) const override {
    const auto eligible = [&](GroupId id) {
      return AnyBelow(context.state, context.state.groups[id]);
    };
    ForWaiters(context, {.eligible = eligible}, [&](const WaitingJob& job) {
      return PreemptFor(context, *this, job, Victims::kAny);
    });
  }
};

}  // namespace

SearchOutcome PreemptFor(CycleContext& context,
                         const Action& action,
                         const WaitingJob& job,
                         Victims victims) {
  State& state = context.state;
  const GroupState& group = state.groups[job.group];
  // Growing beyond a minimum is not a reason to take from others of the same queue.
  if (job.surplus || !AnyBelow(state, group)) return SearchOutcome::kNothing;
  for (int pool : state.PoolsFor(job.group)) {
    if (!FitsQuotas(state, group, job.pods, pool)) continue;
    VictimSearchRequest request{
        .searcher = {.pool = pool, .queue = group.queue, .priority = group.priority},
        .explains = victims == Victims::kAny};
    request.policy.pool = pool;
    request.policy.from = {group.queue};
    request.policy.surplus_only = victims == Victims::kSurplus;
    request.policy.eligible = [queue = group.queue,
                               priority = group.priority](const GroupState& it) {
      return it.queue == queue && it.preemptible && it.priority < priority;
    };
    request.policy.min_runtime = [&state](const GroupState& it) {
      return MinRuntime(state, it.queue, &QueueInfo::preempt_min_runtime);
    };
    const SearchOutcome found = TryEvictFor(context, action, job, request);
    if (found != SearchOutcome::kNothing) return found;
  }
  return SearchOutcome::kNothing;
}

std::string PriorityReason(const CycleContext& context,
                           const EvictionPlan& evictions,
                           PodId victim) {
  const State& state = context.state;
  const GroupState& winner = state.groups[evictions.beneficiary];
  const GroupState& loser = state.groups[state.pods[victim].group];
  return StrCat("priority ", winner.priority, " is above ", loser.priority);
}

const Action& PreemptAction() {
  static const Preempt action;
  return action;
}

}  // namespace swell::sched
