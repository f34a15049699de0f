// allocate: starts what fits into room nobody holds, gang or nothing; then elastic members.
//
// Also grow, which is the second half again after the disruptive actions have made room.
#include <queue>
#include <tuple>

#include "sched/context.h"
#include "sched/topology.h"

namespace swell::sched {
namespace {

std::vector<int32_t> Signature(const State& state,
                               GroupId group,
                               const std::vector<PodId>& pods,
                               Tense tense) {
  std::vector<int32_t> key;
  key.reserve(pods.size() + 2);
  key.push_back(static_cast<int32_t>(tense));
  // Topology makes groups unlike each other; they share nothing.
  key.push_back(HasTopology(state.groups[group]) ? group : kNone);
  for (PodId pod : pods) key.push_back(state.pods[pod].shape);
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

// Tries all pods in one tense, unless nothing changed since the same was tried in vain.
bool TryPlace(
    Context& context, GroupId group, const std::vector<PodId>& pods, Tense tense, Action rule) {
  State& state = context.state;
  const bool memo = Alike(state, pods);
  if (memo && FullEpoch(state, pods[0], tense) == state.room_epoch) {
    ++context.stats.groups_skipped;
    return false;
  }
  std::vector<int32_t> key;
  if (memo && pods.size() > 1) {
    key = Signature(state, group, pods, tense);
    auto known = context.failed.find(key);
    if (known != context.failed.end() && known->second == state.room_epoch) {
      ++context.stats.groups_skipped;
      return false;
    }
  }
  ++context.stats.groups_tried;
  Statement trial(state);
  if (PlaceAll(trial, state, group, pods, tense)) {
    trial.Commit();
    if (tense == Tense::kNow) {
      DecideBinds(context, pods, rule);
    } else {
      DecideNominations(context, pods, rule);
    }
    return true;
  }
  if (!memo) return false;
  // One pod that fits nowhere speaks for its whole shape.
  const bool alone = pods.size() == 1 && !HasTopology(state.groups[group]);
  if (alone) {
    FullEpoch(state, pods[0], tense) = state.room_epoch;
  } else if (pods.size() > 1) {
    context.failed[key] = state.room_epoch;
  }
  return false;
}

void TryMinimum(Context& context, GroupId id) {
  State& state = context.state;
  const GroupState& group = state.groups[id];
  if (!Schedulable(state, group)) return;
  const Needed needed = NeededPods(state, id);
  if (needed.pods.empty() || !FitsQueues(state, group, needed.pods)) return;
  if (TryPlace(context, id, needed.pods, Tense::kNow, Action::kAllocate)) return;
  if (state.releasing_pods == 0) return;
  TryPlace(context, id, needed.pods, Tense::kFuture, Action::kAllocate);
}

}  // namespace

void Allocate(Context& context) {
  for (GroupId group : context.order) {
    if (context.Full()) {
      context.result.more = true;
      return;
    }
    TryMinimum(context, group);
  }
  PlaceElastic(context, Action::kAllocate);
}

void PlaceElastic(Context& context, Action rule) {
  State& state = context.state;
  struct Turn {
    GroupId group;
    std::vector<PodId> pods;
    size_t next = 0;
  };
  std::vector<Turn> turns;
  for (GroupId group : context.order) {
    if (!Schedulable(state, state.groups[group])) continue;
    std::vector<PodId> pods = ElasticPods(state, group);
    if (!pods.empty()) turns.push_back({group, std::move(pods)});
  }
  // Job order: priority, then groups at their minimum before those above it, then age.
  using Key = std::tuple<int32_t, bool, size_t>;
  auto key = [&](size_t turn) {
    const GroupState& group = state.groups[turns[turn].group];
    const bool above = std::any_of(group.sets.begin(), group.sets.end(),
                                   [](const SetState& set) { return set.Surplus() > 0; });
    return Key{-group.priority, above, turn};
  };
  std::priority_queue<Key, std::vector<Key>, std::greater<>> queue;
  for (size_t turn = 0; turn < turns.size(); ++turn) queue.push(key(turn));
  while (!queue.empty()) {
    if (context.Full()) {
      context.result.more = true;
      return;
    }
    const size_t turn = std::get<2>(queue.top());
    queue.pop();
    Turn& t = turns[turn];
    const std::vector<PodId> one{t.pods[t.next++]};
    if (FitsQueues(state, state.groups[t.group], one) &&
        !TryPlace(context, t.group, one, Tense::kNow, rule) && state.releasing_pods > 0) {
      TryPlace(context, t.group, one, Tense::kFuture, rule);
    }
    if (t.next < t.pods.size()) queue.push(key(turn));
  }
}

void Grow(Context& context) { PlaceElastic(context, Action::kGrow); }

}  // namespace swell::sched
