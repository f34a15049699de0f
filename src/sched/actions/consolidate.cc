// consolidate: moves preemptible work to other nodes where that makes room, only if all of it has a
// new place.
//
// A job keeps the room that was made for it until it has started. So while a job waits that comes
// earlier and may yet stop others, later jobs are deferred: else work would move for a job that the
// next cycle displaces. ConsolidateDeferred serves them once reclaim and preempt have run.
#include "sched/actions/make_room.h"
#include "sched/actions/registry.h"
#include "sched/placement/gang.h"
#include "sched/queues/queue_order.h"

namespace swell::sched {
namespace {

SearchOutcome ConsolidateFor(CycleContext& context,
                             const Action& action,
                             const WaitingJob& job,
                             bool contested) {
  State& state = context.state;
  const GroupState& group = state.groups[job.group];
  if (!group.preemptible) return SearchOutcome::kNothing;
  for (int pool : state.PoolsFor(job.group)) {
    if (!FitsQueues(state, group, job.pods, pool, Tense::kFuture)) continue;
    VictimSearchRequest request{
        .searcher = {.pool = pool}, .contested = contested, .explains = false};
    request.policy.pool = pool;
    request.policy.from = AllQueues(state, kNone);
    request.policy.must_move = true;
    request.policy.eligible = [](const GroupState& it) { return it.preemptible; };
    request.policy.min_runtime = [&state](const GroupState& it) {
      return MinRuntime(state, it.queue, &QueueInfo::preempt_min_runtime);
    };
    const SearchOutcome found = TryEvictFor(context, action, job, request);
    if (found != SearchOutcome::kNothing) return found;
  }
  return SearchOutcome::kNothing;
}

// Whether the job may start by stopping others, as far as can be told without a search.
bool MayStopOthers(const State& state, const WaitingJob& job) {
  return state.counts.known_queues > 1 ||
         (!job.surplus && AnyBelow(state, state.groups[job.group]));
}

class Consolidate : public Action {
 public:
  std::string_view Name() const override { return "consolidate"; }
  std::string_view Event() const override { return "Preempted"; }
  std::string Reason(const CycleContext& /*context*/,
                     const EvictionPlan& /*evictions*/,
                     PodId /*victim*/) const override {
    return "free room is in pieces, and moving it makes one piece of it";
  }
  void Run(CycleContext& context) const override {
    State& state = context.state;
    // Moving work frees no GPU. It only brings free ones together.
    const int64_t free_ppm = state.FreeGpuPpm(kNone);
    const bool any = AnyWaits(
        context, [&](GroupId, const QueueAmounts&, int64_t ppm) { return ppm <= free_ppm; });
    if (!any) return;
    bool contested = false;
    const auto eligible = [&state](GroupId id) {
      const GroupState& group = state.groups[id];
      return group.preemptible || state.counts.known_queues > 1 || AnyBelow(state, group);
    };
    ForWaiters(context, {.eligible = eligible}, [&](const WaitingJob& job) {
      const SearchOutcome found = ConsolidateFor(context, *this, job, contested);
      if (found == SearchOutcome::kDeferred) context.deferred.insert(job.group);
      if (found == SearchOutcome::kNothing) contested = contested || MayStopOthers(state, job);
      return found;
    });
  }
};

class ConsolidateDeferred final : public Consolidate {
 public:
  void Run(CycleContext& context) const override {
    if (context.deferred.empty()) return;
    ForDeferred(context, [&](const WaitingJob& job) {
      const SearchOutcome found = ConsolidateFor(context, *this, job, false);
      // Another job has its room now. The next cycle looks for victims instead.
      if (found == SearchOutcome::kNothing && context.deferred.contains(job.group)) {
        context.result.more = true;
      }
      context.deferred.erase(job.group);
      return found;
    });
  }
};

}  // namespace

const Action& ConsolidateAction() {
  static const Consolidate action;
  return action;
}

const Action& ConsolidateDeferredAction() {
  static const ConsolidateDeferred action;
  return action;
}

}  // namespace swell::sched
