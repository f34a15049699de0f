// The actions that make room: shrink, consolidate, reclaim, preempt. They differ in who may be
// taken from; the search for victims is the same.
//
//   shrink       members beyond a minimum go first: nobody is stopped by it
//   consolidate  preemptible work moves to other nodes, only if all of it has a new place; put off
//                until reclaim and preempt are done where someone waits that comes first
//   reclaim      a queue within its fair share takes from queues over theirs; a job's priority
//                does not matter
//   preempt      inside a queue, strictly higher priority takes from preemptible work
#include <functional>

#include "base/strings.h"
#include "sched/actions/actions.h"
#include "sched/actions/decide.h"
#include "sched/placement/gang.h"
#include "sched/placement/topology.h"
#include "sched/queues/queue_order.h"
#include "sched/state/statement.h"
#include "sched/victims/reclaim_rules.h"
#include "sched/victims/victims.h"

namespace swell::sched {
namespace {

SearchKey KeyOf(const State& state, const SearcherKey& searcher, const WaitingJob& job) {
  const GroupState& group = state.groups[job.group];
  SearchKey key{.searcher = searcher,
                .preemptible = group.preemptible,
                .group = HasTopology(group) || job.surplus ? job.group : kNone};
  for (PodId pod : job.pods) {
    key.shapes.push_back(state.pods[pod].shape);
    // Others' inter-pod terms tell pods of one shape apart by their labels.
    if (!state.terms.empty()) key.labels.push_back(state.pods[pod].labels);
  }
  return key;
}

struct VictimSearchRequest {
  SearcherKey searcher;
  bool contested = false;  // the place that is found may be another's yet: see Consolidate
  VictimPolicy policy;
};

// What is free, on all nodes of the pool together.
const FreeRoom& FreeInPieces(Context& context, int pool) {
  const State& state = context.state;
  FreeRoom& room = context.free_rooms[pool];
  if (room.as_of == state.touched.size() + 1) return room;
  room = {.as_of = state.touched.size() + 1};
  for (NodeId id : state.index.by_rank) {
    const NodeState& node = state.nodes[id];
    if (pool != kNone && node.pool != pool) continue;
    for (int r = 0; r < kGpu; ++r) {
      room.core[r] += node.allocatable[r] - node.used[r] + node.releasing[r] - node.promised[r];
    }
  }
  return room;
}

// Whether what is free in pieces adds up to what the job needs.
bool EnoughInPieces(Context& context, const WaitingJob& job, int pool) {
  CoreAmounts asked{};
  int64_t gpu_ppm = 0;
  for (PodId pod : job.pods) {
    const Shape& shape = context.state.ShapeOf(pod);
    for (int r = 0; r < kGpu; ++r) asked[r] += shape.core[r];
    gpu_ppm += shape.core[kGpu] * kPpm + shape.share_ppm * shape.share_devices;
  }
  if (gpu_ppm > context.state.FreeGpuPpm(pool)) return false;
  const CoreAmounts& free = FreeInPieces(context, pool).core;
  return std::equal(asked.begin(), asked.end(), free.begin(), std::less_equal<>());
}

enum class SearchOutcome { kStarted, kDeferred, kNothing, kOutOfBudget };

SearchOutcome TryEvictFor(Context& context,
                          const WaitingJob& job,
                          const VictimSearchRequest& request,
                          bool told) {
  State& state = context.state;
  const SearchKey key = KeyOf(state, request.searcher, job);
  auto failed = context.failed_searches.find(key);
  if (failed != context.failed_searches.end()) {
    ++context.stats.groups_skipped;
    if (told) context.search_said[job.group] = failed->second;
    return SearchOutcome::kNothing;
  }
  if (request.policy.must_move && !EnoughInPieces(context, job, request.policy.pool)) {
    context.failed_searches[key] = "";
    return SearchOutcome::kNothing;
  }
  if (context.budget <= 0) {
    context.result.more = true;
    return SearchOutcome::kOutOfBudget;
  }
  const bool whole_budget = context.budget == context.settings.search_budget;
  Statement trial(state);
  const VictimPlan plan =
      FindVictims(context, trial, job.group, job.pods, request.searcher, request.policy);
  if (plan.outcome != VictimPlan::Outcome::kPlan) {
    const bool spent = plan.outcome == VictimPlan::Outcome::kBudgetSpent;
    if (spent) context.result.more = true;
    // Cut short after others had their part of the budget, it deserves a try with all of it.
    if (!spent || whole_budget) context.failed_searches[key] = plan.because;
    if (told) context.search_said[job.group] = plan.because;
    return SearchOutcome::kNothing;
  }
  if (request.contested) return SearchOutcome::kDeferred;
  trial.Commit();
  EvictionCause cause;
  cause.rule = request.searcher.action;
  cause.beneficiary = job.group;
  cause.beneficiaries = job.pods;
  DecideEvictions(context, plan.victims, cause);
  DecideNominations(context, job.pods, request.searcher.action);
  std::vector<PodId> moved;
  for (PodId pod : plan.victims) {
    if (state.pods[pod].promise != kNone) moved.push_back(pod);
  }
  DecideNominations(context, moved, request.searcher.action);
  if (request.policy.must_move) {
    std::set<GroupId> groups{job.group};
    for (PodId pod : moved) groups.insert(state.pods[pod].group);
    for (GroupId group : groups) {
      state.groups[group].moved_at = context.now;
      context.result.moved.push_back(state.groups[group].key);
    }
  }
  context.failed_searches.clear();  // what was freed beside the place may help others
  context.search_said.erase(job.group);
  return SearchOutcome::kStarted;
}

// The jobs that wait, each with what it lacks: its minimum, else one more member.
class Waiters {
 public:
  // Only those that `may` be helped by the action at all.
  Waiters(Context& context, const std::function<bool(GroupId)>& may)
      : context_(context), turns_(context.state, context.shares, context.promised_first) {
    for (GroupId id : context.order) {
      if (context.state.startable[id] > 0 && may(id)) Push(id);
    }
  }
  bool Empty() const { return turns_.Empty(); }
  WaitingJob Pop() { return turns_.Pop(); }
  // It got what it lacked and may lack more; others lost some.
  void Again(GroupId id) {
    turns_.Reorder();
    Push(id);
  }

 private:
  void Push(GroupId id) {
    State& state = context_.state;
    if (!Schedulable(state, state.groups[id])) return;
    Needed needed = NeededPods(state, id);
    const bool surplus = needed.met;
    if (surplus) {
      needed.pods = ElasticPods(state, id);
      if (needed.pods.size() > 1) needed.pods.resize(1);
    }
    if (needed.pods.empty() || !MayPreempt(state, id, needed.pods)) return;
    const QueueAmounts need = NeedOf(state, needed.pods);
    turns_.Push({id, std::move(needed.pods), need, surplus});
  }

  Context& context_;
  QueueOrder turns_;
};

template <class Fn>
void ForWaiters(Context& context, const std::function<bool(GroupId)>& may, Fn&& attempt) {
  Waiters waiters(context, may);
  while (!waiters.Empty()) {
    const WaitingJob job = waiters.Pop();
    const SearchOutcome found = attempt(job);
    if (found == SearchOutcome::kOutOfBudget) return;
    if (found == SearchOutcome::kStarted) waiters.Again(job.group);
  }
}

// Protection of the nearest queue that sets one.
Duration MinRuntime(const State& state,
                    QueueId queue,
                    std::optional<Duration> QueueInfo::*setting) {
  for (int depth = 0; queue != kNone && depth < kQueueDepthMax; ++depth) {
    const QueueInfo& info = state.queues[queue].info;
    if (info.*setting) return *(info.*setting);
    queue = state.queues[queue].parent;
  }
  return Duration::zero();
}

// Whether anything in the group's queue has a lower priority and may be stopped.
bool AnyBelow(const State& state, const GroupState& group) {
  const auto& holders = state.queues[group.queue].holders_by_priority;
  return !holders.empty() && holders.begin()->first < group.priority;
}

std::vector<QueueId> AllQueues(const State& state, QueueId but) {
  std::vector<QueueId> queues;
  for (size_t id = 0; id < state.queues.size(); ++id) {
    if (static_cast<QueueId>(id) != but) queues.push_back(static_cast<QueueId>(id));
  }
  return queues;
}

SearchOutcome PreemptFor(Context& context, const WaitingJob& job, Action rule) {
  State& state = context.state;
  const GroupState& group = state.groups[job.group];
  // Growing beyond a minimum is no reason to take from others of the same queue.
  if (job.surplus || !AnyBelow(state, group)) return SearchOutcome::kNothing;
  for (int pool : state.PoolsFor(job.group)) {
    if (!FitsQuotas(state, group, job.pods, pool)) continue;
    VictimSearchRequest request{.searcher = {.action = rule,
                                             .rule = Action::kPreempt,
                                             .pool = pool,
                                             .queue = group.queue,
                                             .priority = group.priority}};
    request.policy.rule = rule;
    request.policy.pool = pool;
    request.policy.from = {group.queue};
    request.policy.surplus_only = rule == Action::kShrink;
    request.policy.eligible = [queue = group.queue,
                               priority = group.priority](const GroupState& it) {
      return it.queue == queue && it.preemptible && it.priority < priority;
    };
    request.policy.min_runtime = [&state](const GroupState& it) {
      return MinRuntime(state, it.queue, &QueueInfo::preempt_min_runtime);
    };
    const SearchOutcome found = TryEvictFor(context, job, request, rule == Action::kPreempt);
    if (found != SearchOutcome::kNothing) return found;
  }
  return SearchOutcome::kNothing;
}

SearchOutcome ReclaimFor(Context& context, const WaitingJob& job, Action rule) {
  State& state = context.state;
  if (state.known_queues < 2) return SearchOutcome::kNothing;
  const GroupState& group = state.groups[job.group];
  const int pool = state.PoolOf(job.group);
  if (!FitsQuotas(state, group, job.pods, pool)) return SearchOutcome::kNothing;
  const ReclaimRules rules(context, group.queue, pool, job.need);
  if (!rules.MayReclaim()) return SearchOutcome::kNothing;
  VictimSearchRequest request{
      .searcher = {.action = rule, .rule = Action::kReclaim, .pool = pool, .queue = group.queue}};
  request.policy.rule = rule;
  request.policy.pool = state.live_pools.size() == 1 ? kNone : pool;
  request.policy.surplus_only = rule == Action::kShrink;
  request.policy.from = AllQueues(state, group.queue);
  request.policy.eligible = [](const GroupState& it) { return it.preemptible; };
  request.policy.min_runtime = [&](const GroupState& it) {
    return MinRuntime(state, rules.BelowCommon(it.queue), &QueueInfo::reclaim_min_runtime);
  };
  // Nobody loses who only moves: fairness does not come into it.
  if (rule == Action::kReclaim && rules.MayMoveOthers()) {
    VictimSearchRequest moving = request;
    moving.searcher.moves_only = true;
    moving.policy.must_move = true;
    const SearchOutcome found = TryEvictFor(context, job, moving, false);
    if (found != SearchOutcome::kNothing) return found;
  }
  request.policy.from = rules.MayLose();
  request.policy.allows = [&rules](QueueId victim, const Losses& losses, const QueueAmounts& more) {
    return rules.Allows(victim, losses, more);
  };
  request.policy.protects = [&rules](QueueId victim, const QueueAmounts& charge) {
    return rules.WithinItsQuota(victim, charge);
  };
  return TryEvictFor(context, job, request, rule == Action::kReclaim);
}

SearchOutcome ConsolidateFor(Context& context, const WaitingJob& job, bool contested) {
  State& state = context.state;
  const GroupState& group = state.groups[job.group];
  if (!group.preemptible) return SearchOutcome::kNothing;
  for (int pool : state.PoolsFor(job.group)) {
    if (!FitsQueues(state, group, job.pods, pool, Tense::kFuture)) continue;
    VictimSearchRequest request{
        .searcher = {.action = Action::kConsolidate, .rule = Action::kConsolidate, .pool = pool},
        .contested = contested};
    request.policy.rule = Action::kConsolidate;
    request.policy.pool = pool;
    request.policy.from = AllQueues(state, kNone);
    request.policy.must_move = true;
    request.policy.eligible = [](const GroupState& it) { return it.preemptible; };
    request.policy.min_runtime = [&state](const GroupState& it) {
      return MinRuntime(state, it.queue, &QueueInfo::preempt_min_runtime);
    };
    const SearchOutcome found = TryEvictFor(context, job, request, false);
    if (found != SearchOutcome::kNothing) return found;
  }
  return SearchOutcome::kNothing;
}

// Whether it may be served by stopping others, as far as can be told without a search.
bool MayStopOthers(const State& state, const WaitingJob& job) {
  return state.known_queues > 1 || (!job.surplus && AnyBelow(state, state.groups[job.group]));
}

}  // namespace

void Shrink(Context& context) {
  State& state = context.state;
  if (state.surplus_groups == 0) return;
  auto may = [&state](GroupId id) {
    return state.known_queues > 1 || AnyBelow(state, state.groups[id]);
  };
  ForWaiters(context, may, [&](const WaitingJob& job) {
    const SearchOutcome found = ReclaimFor(context, job, Action::kShrink);
    return found != SearchOutcome::kNothing ? found : PreemptFor(context, job, Action::kShrink);
  });
}

// Room that was made for a job cannot be taken from it before it has started. So where somebody
// waits that comes first and may yet stop others, nobody is moved for it until that was tried: else
// it would be moved for, and displaced in the next cycle.
void Consolidate(Context& context) {
  State& state = context.state;
  bool contested = false;
  auto may = [&state](GroupId id) {
    const GroupState& group = state.groups[id];
    return group.preemptible || state.known_queues > 1 || AnyBelow(state, group);
  };
  ForWaiters(context, may, [&](const WaitingJob& job) {
    const SearchOutcome found = ConsolidateFor(context, job, contested);
    if (found == SearchOutcome::kDeferred) context.deferred.insert(job.group);
    if (found == SearchOutcome::kNothing) contested = contested || MayStopOthers(state, job);
    return found;
  });
}

void ConsolidateDeferred(Context& context) {
  if (context.deferred.empty()) return;
  ForWaiters(
      context, [&](GroupId id) { return context.deferred.contains(id); },
      [&](const WaitingJob& job) {
        const SearchOutcome found = ConsolidateFor(context, job, false);
        // Its room is another's now: whom it may stop the next cycle asks.
        if (found == SearchOutcome::kNothing && context.deferred.contains(job.group)) {
          context.result.more = true;
        }
        context.deferred.erase(job.group);
        return found;
      });
}

void Reclaim(Context& context) {
  if (context.state.known_queues < 2) return;
  ForWaiters(
      context, [&](GroupId id) { return !context.deferred.contains(id); },
      [&](const WaitingJob& job) { return ReclaimFor(context, job, Action::kReclaim); });
}

void Preempt(Context& context) {
  auto may = [&](GroupId id) {
    return AnyBelow(context.state, context.state.groups[id]) && !context.deferred.contains(id);
  };
  ForWaiters(context, may,
             [&](const WaitingJob& job) { return PreemptFor(context, job, Action::kPreempt); });
}

}  // namespace swell::sched
