// allocate: starts what fits into room nobody holds, gang or nothing; then elastic members. Queues
// take turns by fairness; a limit bounds them, a fair share does not.
//
// Also grow, which is the second half again after the disruptive actions have made room.
#include "sched/actions/actions.h"
#include "sched/actions/decide.h"
#include "sched/placement/gang.h"
#include "sched/placement/topology.h"
#include "sched/queues/queue_order.h"
#include "sched/state/statement.h"

namespace swell::sched {
namespace {

PlacementKey KeyOf(
    const State& state, GroupId group, const std::vector<PodId>& pods, Tense tense, int pool) {
  // Topology makes groups unlike each other; they share nothing.
  PlacementKey key{.tense = static_cast<int32_t>(tense),
                   .pool = pool,
                   .group = HasTopology(state.groups[group]) ? group : kNone};
  key.shapes.reserve(pods.size());
  for (PodId pod : pods) key.shapes.push_back(state.pods[pod].shape);
  return key;
}

// Inter-pod terms set pods of one shape apart: what failed for one may work for the next.
bool Alike(const State& state, const std::vector<PodId>& pods) {
  return std::all_of(pods.begin(), pods.end(), [&](PodId pod) {
    const Shape& shape = state.ShapeOf(pod);
    return !shape.DependsOnPods() && shape.anti_affinity.empty() &&
           state.terms.labels(state.pods[pod].labels).matching.empty();
  });
}

uint64_t& FullEpoch(State& state, PodId pod, Tense tense) {
  Shape& shape = state.shapes[state.pods[pod].shape];
  return tense == Tense::kNow ? shape.full_now_epoch : shape.full_future_epoch;
}

struct Attempt {
  Tense tense = Tense::kNow;
  int pool = kNone;
  Action rule = Action::kAllocate;
};

// Tries all pods in one tense and pool, unless nothing changed since the same was tried in vain.
bool TryPlace(Context& context,
              GroupId group,
              const std::vector<PodId>& pods,
              const Attempt& attempt) {
  State& state = context.state;
  // Held nodes are open to some and not to others.
  const bool memo = state.held_nodes.empty() && Alike(state, pods);
  const bool whole_cluster = attempt.pool == kNone;
  if (memo && FullEpoch(state, pods[0], attempt.tense) == state.room_epoch) {
    ++context.stats.groups_skipped;
    return false;
  }
  std::optional<PlacementKey> key;
  if (memo && (pods.size() > 1 || !whole_cluster)) {
    key = KeyOf(state, group, pods, attempt.tense, attempt.pool);
    auto known = context.failed.find(*key);
    if (known != context.failed.end() && known->second == state.room_epoch) {
      ++context.stats.groups_skipped;
      return false;
    }
  }
  ++context.stats.groups_tried;
  Statement trial(state);
  if (PlaceAll(trial, state, group, pods, attempt.tense, state.FilterOf(attempt.pool))) {
    trial.Commit();
    if (attempt.tense == Tense::kNow) {
      DecideBinds(context, pods, attempt.rule);
    } else {
      DecideNominations(context, pods, attempt.rule);
    }
    return true;
  }
  if (!memo) return false;
  // One pod that fits nowhere speaks for its whole shape.
  const bool alone = pods.size() == 1 && !HasTopology(state.groups[group]) && whole_cluster;
  if (alone) {
    FullEpoch(state, pods[0], attempt.tense) = state.room_epoch;
  } else if (key) {
    context.failed[*key] = state.room_epoch;
  }
  return false;
}

bool TryPools(Context& context, GroupId id, const std::vector<PodId>& pods, Action rule) {
  State& state = context.state;
  const std::vector<int> pools = state.PoolsFor(id);
  for (Tense tense : {Tense::kNow, Tense::kFuture}) {
    if (tense == Tense::kFuture && state.releasing_pods == 0) break;
    for (int pool : pools) {
      if (!FitsQueues(state, state.groups[id], pods, pool, tense)) continue;
      if (TryPlace(context, id, pods, {tense, pool, rule})) return true;
    }
  }
  return false;
}

// Surplus members that others gave way to: no waiting minimum takes that from them.
void PushPromised(const State& state, GroupId id, QueueOrder& turns) {
  if (state.hinted.empty()) return;
  int32_t turn = 0;
  for (PodId pod : ElasticPods(state, id)) {
    if (state.pods[pod].hint == kNone) continue;
    const std::vector<PodId> one{pod};
    turns.Push({id, one, NeedOf(state, one), true, ++turn});
  }
}

// Members beyond the minima, one per group and turn.
void PlaceElastic(Context& context, Action rule) {
  State& state = context.state;
  QueueOrder turns(state, context.shares, context.promised_first);
  std::map<GroupId, std::vector<PodId>> waiting;  // what comes after the first, in reverse
  auto push = [&](GroupId id, std::vector<PodId>& rest) {
    const std::vector<PodId> one{rest.back()};
    rest.pop_back();
    turns.Push({id, one, NeedOf(state, one), true});
  };
  for (GroupId id : context.order) {
    if (state.startable[id] == 0 || !Schedulable(state, state.groups[id])) continue;
    std::vector<PodId> pods = ElasticPods(state, id);
    if (pods.empty()) continue;
    std::reverse(pods.begin(), pods.end());
    push(id, waiting[id] = std::move(pods));
  }
  while (!turns.Empty()) {
    if (context.Full()) {
      context.result.more = true;
      return;
    }
    const WaitingJob job = turns.Pop();
    TryPools(context, job.group, job.pods, rule);
    std::vector<PodId>& rest = waiting[job.group];
    if (!rest.empty()) push(job.group, rest);
  }
}

}  // namespace

void Allocate(Context& context) {
  State& state = context.state;
  context.result.decisions.reserve(context.order.size());
  QueueOrder turns(state, context.shares, context.promised_first);
  for (GroupId id : context.order) {
    if (state.startable[id] == 0 || !Schedulable(state, state.groups[id])) continue;
    Needed needed = NeededPods(state, id);
    if (needed.met) {
      PushPromised(state, id, turns);
      continue;
    }
    if (needed.pods.empty()) continue;
    const QueueAmounts need = NeedOf(state, needed.pods);
    turns.Push({id, std::move(needed.pods), need, false});
  }
  while (!turns.Empty()) {
    if (context.Full()) {
      context.result.more = true;
      return;
    }
    const WaitingJob job = turns.Pop();
    TryPools(context, job.group, job.pods, Action::kAllocate);
  }
  PlaceElastic(context, Action::kAllocate);
}

void Grow(Context& context) { PlaceElastic(context, Action::kGrow); }

}  // namespace swell::sched
