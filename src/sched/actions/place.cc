#include "sched/actions/place.h"

#include <algorithm>
#include <optional>

#include "sched/actions/decide.h"
#include "sched/placement/gang.h"
#include "sched/placement/topology.h"
#include "sched/queues/goodput_turns.h"
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
};

// What is known of attempts that failed in this cycle. An attempt is not repeated before room
// appears somewhere (Versions::room).
class FailedAttempts {
 public:
  FailedAttempts(CycleContext& context,
                 GroupId group,
                 const std::vector<PodId>& pods,
                 const Attempt& attempt)
      : context_(context),
        state_(context.state),
        group_(group),
        pods_(pods),
        attempt_(attempt),
        // Held nodes are open to some and not to others.
        comparable_(state_.held_nodes.empty() && Alike(state_, pods)) {}

  bool Known() {
    if (!comparable_) return false;
    if (FullEpoch(state_, pods_[0], attempt_.tense) == state_.versions.room) return true;
    if (pods_.size() == 1 && attempt_.pool == kNone) return false;
    key_ = KeyOf(state_, group_, pods_, attempt_.tense, attempt_.pool);
    auto known = context_.failed_placements.find(*key_);
    return known != context_.failed_placements.end() && known->second == state_.versions.room;
  }
  // After Known() answered false and the attempt failed.
  void Note() {
    if (!comparable_) return;
    // One pod that fits nowhere speaks for its whole shape.
    const bool alone =
        pods_.size() == 1 && !HasTopology(state_.groups[group_]) && attempt_.pool == kNone;
    if (alone) {
      FullEpoch(state_, pods_[0], attempt_.tense) = state_.versions.room;
    } else if (key_) {
      context_.failed_placements[*key_] = state_.versions.room;
    }
  }

 private:
  CycleContext& context_;
  State& state_;
  const GroupId group_;
  const std::vector<PodId>& pods_;
  const Attempt attempt_;
  const bool comparable_;
  std::optional<PlacementKey> key_;
};

// Tries all pods in one tense and pool.
bool TryPlace(CycleContext& context,
              const Action& action,
              GroupId group,
              const std::vector<PodId>& pods,
              const Attempt& attempt) {
  State& state = context.state;
  FailedAttempts failed(context, group, pods, attempt);
  if (failed.Known()) {
    ++context.stats.groups_skipped;
    return false;
  }
  ++context.stats.groups_tried;
  Statement trial(state);
  if (!PlaceAll(trial, state, group, pods, attempt.tense, state.FilterOf(attempt.pool))) {
    failed.Note();
    return false;
  }
  trial.Commit();
  if (attempt.tense == Tense::kNow) {
    DecideBinds(context, action, pods);
  } else {
    DecideNominations(context, action, pods);
  }
  return true;
}

}  // namespace

bool TryPlaceNowOrLater(CycleContext& context,
                        const Action& action,
                        GroupId id,
                        const std::vector<PodId>& pods) {
  State& state = context.state;
  const std::vector<int> pools = state.PoolsFor(id);
  for (Tense tense : {Tense::kNow, Tense::kFuture}) {
    if (tense == Tense::kFuture && state.counts.releasing_pods == 0) break;
    for (int pool : pools) {
      if (!FitsQueues(state, state.groups[id], pods, pool, tense)) continue;
      if (TryPlace(context, action, id, pods, {tense, pool})) return true;
    }
  }
  return false;
}

void PlaceElastic(CycleContext& context, const Action& action) {
  State& state = context.state;
  QueueOrder turns(state, context.shares, context.promised_first);
  GoodputTurns waiting(state);
  // The turn of `id`, which the pod of another group may take.
  auto push = [&](GroupId id, GroupId takes, bool had_turn) {
    const std::vector<PodId> one{waiting.Next(takes)};
    turns.Push({id, one, NeedOf(state, one), true, 0, had_turn});
  };
  state.lists.waiting.Settle(state);
  // Jobs of a line lack their minimum.
  for (GroupId id : state.lists.waiting.alone()) {
    if (state.lists.startable[id] == 0 || !Schedulable(state, state.groups[id])) continue;
    std::vector<PodId> pods = ElasticPods(state, id);
    if (pods.empty()) continue;
    std::reverse(pods.begin(), pods.end());
    waiting.Add(id, std::move(pods));
    push(id, id, false);
  }
  while (!turns.Empty()) {
    if (context.Full()) {
      context.result.more = true;
      return;
    }
    const WaitingJob job = turns.Pop();
    // Room that others gave way for is not exchanged.
    const bool promised = state.pods[job.pods.front()].hint != kNone && waiting.Waits(job.group);
    const GroupId id = promised ? job.group : waiting.HasTurnOf(job.group);
    if (id == kNone) continue;
    const bool placed = TryPlaceNowOrLater(context, action, id, {waiting.Next(id)});
    if (placed) turns.Started();
    waiting.Taken(id);
    // There are as many turns as groups that wait, each in the place of the group that began it.
    if (!waiting.Waits(id)) continue;
    const GroupId next = waiting.Waits(job.group) ? job.group : waiting.HasTurnOf(job.group);
    const bool exchanged = placed && !state.groups[job.group].curve.empty();
    push(job.group, next, job.had_turn || exchanged);
  }
}

}  // namespace swell::sched
