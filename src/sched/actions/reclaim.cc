// reclaim: a queue within its fair share takes from queues over theirs. The priority of a job does
// not matter.
#include "sched/actions/reclaim.h"

#include "base/strings.h"
#include "sched/actions/registry.h"
#include "sched/placement/gang.h"
#include "sched/queues/queue_order.h"
#include "sched/state/amount_text.h"
#include "sched/victims/reclaim_rules.h"

namespace swell::sched {
namespace {

bool MayReclaimFor(const CycleContext& context, const WaitingJob& job) {
  State& state = context.state;
  return StaysWithinDue(context, state.groups[job.group].queue, state.PoolOf(job.group), job.need);
}

class Reclaim final : public Action {
 public:
  std::string_view Name() const override { return "reclaim"; }
  std::string_view Event() const override { return "Reclaimed"; }
  std::string Reason(const CycleContext& context,
                     const EvictionPlan& evictions,
                     PodId victim) const override {
    return FairnessReason(context, evictions, victim);
  }
  void Run(CycleContext& context) const override {
    if (context.state.counts.known_queues < 2) return;
    State& state = context.state;
    // The pool of a gang is found once: that looks at all of its members.
    GroupId group = kNone;
    int pool = kNone;
    const bool any = AnyWaits(context, [&](GroupId id, const QueueAmounts& charge, int64_t) {
      if (id != group) {
        group = id;
        pool = state.PoolOf(group);
      }
      return StaysWithinDue(context, state.groups[group].queue, pool, charge);
    });
    if (!any) return;
    const WaiterFilter filter{
        .feasible = [&](const WaitingJob& job) { return MayReclaimFor(context, job); }};
    ForWaiters(context, filter, [&](const WaitingJob& job) {
      return ReclaimFor(context, *this, job, Victims::kAny);
    });
  }
};

// What the queue held before the eviction. Victims that moved within the pool still count.
int64_t HeldBefore(
    const State& state, QueueId queue, int pool, int resource, const std::vector<PodId>& victims) {
  int64_t held = state.queues[queue].pools[pool].used[resource];
  for (PodId pod : victims) {
    const PodState& lost = state.pods[pod];
    const bool stays = lost.promise != kNone && lost.charge_pool == pool;
    if (stays || lost.node == kNone || state.nodes[lost.node].pool != pool) continue;
    QueueId own = state.groups[lost.group].queue;
    for (int depth = 0; own != kNone && depth < kQueueDepthMax; ++depth) {
      if (own == queue) held += lost.charge[resource];
      own = state.queues[own].parent;
    }
  }
  return held;
}

}  // namespace

SearchOutcome ReclaimFor(CycleContext& context,
                         const Action& action,
                         const WaitingJob& job,
                         Victims victims) {
  State& state = context.state;
  if (state.counts.known_queues < 2) return SearchOutcome::kNothing;
  const GroupState& group = state.groups[job.group];
  const int pool = state.PoolOf(job.group);
  if (!FitsQuotas(state, group, job.pods, pool)) return SearchOutcome::kNothing;
  if (!StaysWithinDue(context, group.queue, pool, job.need)) return SearchOutcome::kNothing;
  const ReclaimRules rules(context, group.queue, pool, job.need);
  VictimSearchRequest request{
      .searcher = {.across_queues = true, .pool = pool, .queue = group.queue},
      .explains = victims == Victims::kAny};
  request.policy.pool = state.pool_facts.live.size() == 1 ? kNone : pool;
  request.policy.surplus_only = victims == Victims::kSurplus;
  request.policy.from = AllQueues(state, group.queue);
  request.policy.eligible = [](const GroupState& it) { return it.preemptible; };
  request.policy.min_runtime = [&](const GroupState& it) {
    return MinRuntime(state, rules.BelowCommon(it.queue), &QueueInfo::reclaim_min_runtime);
  };
  // A victim that only moves loses nothing, so its fair share does not matter.
  if (victims == Victims::kAny && rules.MayMoveOthers()) {
    VictimSearchRequest moving = request;
    moving.searcher.moves_only = true;
    moving.policy.must_move = true;
    moving.explains = false;
    const SearchOutcome found = TryEvictFor(context, action, job, moving);
    if (found != SearchOutcome::kNothing) return found;
  }
  // Otherwise work could keep another project's quota for as long as its own minimum run time says.
  request.policy.takes_back = true;
  request.policy.from = rules.MayLose();
  request.policy.allows = [&rules](QueueId victim, const Losses& losses, const QueueAmounts& more) {
    return rules.Allows(victim, losses, more);
  };
  request.policy.protects = [&rules](QueueId victim, const QueueAmounts& charge) {
    return rules.WithinItsQuota(victim, charge);
  };
  return TryEvictFor(context, action, job, request);
}

std::string FairnessReason(const CycleContext& context,
                           const EvictionPlan& evictions,
                           PodId victim) {
  const State& state = context.state;
  const GroupState& winner = state.groups[evictions.beneficiary];
  const GroupState& loser = state.groups[state.pods[victim].group];
  const int pool = state.pods[evictions.beneficiaries.front()].charge_pool;
  QueueAmounts need{};
  for (PodId pod : evictions.beneficiaries) {
    for (int r = 0; r < kQueueResources; ++r) need[r] += state.pods[pod].charge[r];
  }
  const int r = MainResource(need);
  const ReclaimRules rules(context, winner.queue, pool, need);
  const QueueId theirs = rules.BelowCommon(loser.queue);
  if (theirs == kNone) return "";
  const QueuePool& other = state.queues[theirs].pools[pool];
  const int64_t held = HeldBefore(state, theirs, pool, r, evictions.victims);
  const QueuePool& own = state.queues[winner.queue].pools[pool];
  const int64_t fair = context.shares.Fair(pool, winner.queue)[r];
  // Only where all quotas exceed the total.
  const bool by_quota = own.used[r] > fair && own.used[r] <= own.quota[r];
  std::string text = StrCat("project ", state.queues[winner.queue].name, " has a ",
                            by_quota ? "quota" : "fair share", " of ",
                            AmountText(r, by_quota ? own.quota[r] : fair), " and would hold ",
                            AmountText(r, own.used[r]), "; project ", state.queues[theirs].name,
                            " held ", AmountText(r, held), " with a fair share of ",
                            AmountText(r, context.shares.Fair(pool, theirs)[r]));
  if (other.quota[r] >= 0) text += StrCat(" and a quota of ", AmountText(r, other.quota[r]));
  return text;
}

const Action& ReclaimAction() {
  static const Reclaim action;
  return action;
}

}  // namespace swell::sched
