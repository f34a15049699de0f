// preempt: inside a queue, a job takes from preemptible work of strictly lower priority. Where that
// is not enough, it takes the rest from other queues, by the rules of reclaim.
#include "sched/actions/preempt.h"

#include <algorithm>

#include "base/strings.h"
#include "sched/actions/registry.h"
#include "sched/placement/gang.h"
#include "sched/queues/queue_order.h"
#include "sched/victims/reclaim_rules.h"

namespace swell::sched {
namespace {

// Whether the queue would hold no more than it is due with the job, if all its lesser work were
// gone.
bool MayBeDue(const CycleContext& context,
              const GroupState& group,
              int pool,
              const QueueAmounts& need) {
  const State& state = context.state;
  const QueueState& queue = state.queues[group.queue];
  const QueueAmounts& due = context.shares.Due(pool, group.queue);
  QueueAmounts beyond{};
  for (int r = 0; r < kQueueResources; ++r) {
    if (need[r] > due[r]) return false;
    if (need[r] > 0) beyond[r] = queue.pools[pool].used[r] + need[r] - due[r];
  }
  const auto none = [&beyond] {
    return std::all_of(beyond.begin(), beyond.end(), [](int64_t amount) { return amount <= 0; });
  };
  for (GroupId id : queue.holders) {
    if (none()) return true;
    if (state.groups[id].priority >= group.priority) continue;
    for (PodId pod : state.groups[id].members) {
      if (!state.pods[pod].Holds()) continue;
      for (int r = 0; r < kQueueResources; ++r) beyond[r] -= state.pods[pod].charge[r];
    }
  }
  return none();
}

// The job gives its queue no more than it is due, once enough of its lesser work is gone.
SearchOutcome PreemptAndReclaimFor(CycleContext& context,
                                   const Action& action,
                                   const WaitingJob& job) {
  State& state = context.state;
  const GroupState& group = state.groups[job.group];
  if (job.surplus || state.counts.known_queues < 2) return SearchOutcome::kNothing;
  const int pool = state.PoolOf(job.group);
  if (!FitsQuotas(state, group, job.pods, pool)) return SearchOutcome::kNothing;
  ReclaimRules rules(context, group.queue, pool, job.need);
  const std::vector<QueueId> others = rules.MayLose();
  if (others.empty() || !MayBeDue(context, group, pool, job.need)) return SearchOutcome::kNothing;
  const QueueAmounts& due = context.shares.Due(pool, group.queue);
  VictimSearchRequest request{.searcher = {.across_queues = true,
                                           .pool = pool,
                                           .queue = group.queue,
                                           .priority = group.priority},
                              .from_others = &ReclaimAction(),
                              .explains = false};
  VictimPolicy& policy = request.policy;
  policy.pool = state.pool_facts.live.size() == 1 ? kNone : pool;
  policy.from = others;
  policy.from.push_back(group.queue);
  policy.takes_back = true;
  policy.eligible = [own = group.queue, priority = group.priority](const GroupState& it) {
    return it.preemptible && (it.queue != own || it.priority < priority);
  };
  policy.min_runtime = [&, own = group.queue](const GroupState& it) {
    return it.queue == own
               ? MinRuntime(state, own, &QueueInfo::preempt_min_runtime)
               : MinRuntime(state, rules.BelowCommon(it.queue), &QueueInfo::reclaim_min_runtime);
  };
  policy.may_hold = [&, own = group.queue](const std::vector<PodId>& pods) {
    const QueueAmounts& used = state.queues[own].pools[pool].used;
    for (int r = 0; r < kQueueResources; ++r) {
      const int64_t more = pods.empty() ? 0 : job.need[r];
      if (job.need[r] > 0 && used[r] + more > due[r]) return false;
    }
    return true;
  };
  policy.allows = [&, own = group.queue](QueueId victim, const Losses& losses,
                                         const QueueAmounts& more) {
    if (victim == own) return true;
    rules.ReadUse(job.pods);
    return rules.Allows(victim, losses, more);
  };
  policy.protects = [&](QueueId victim, const QueueAmounts& charge) {
    rules.ReadUse(job.pods);
    return rules.WithinItsQuota(victim, charge);
  };
  return TryEvictFor(context, action, job, request);
}

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
      const SearchOutcome found = PreemptFor(context, *this, job, Victims::kAny);
      return found != SearchOutcome::kNothing ? found : PreemptAndReclaimFor(context, *this, job);
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
