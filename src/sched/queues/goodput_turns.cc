#include "sched/queues/goodput_turns.h"

#include <utility>

#include "sched/queues/queue_order.h"

namespace swell::sched {

int64_t CurveMembers(const State& state, GroupId id) {
  const GroupState& group = state.groups[id];
  const SetState& set = group.sets[group.curve_set];
  return set.holding + set.promised;
}

int64_t WorthOf(const State& state, GroupId id, PodId pod) {
  const GroupState& group = state.groups[id];
  if (group.curve.empty() || state.pods[pod].set != group.curve_set) return 0;
  const int64_t gain = group.curve.Gain(CurveMembers(state, id));
  const int64_t gpu_ppm = state.ChargeOf(state.ShapeOf(pod), kNone)[kQueueGpu];
  return gpu_ppm > 0 ? gain * kPpm / gpu_ppm : gain;
}

GoodputTurns::Lane GoodputTurns::LaneOf(GroupId id) const {
  return {state_.groups[id].queue, state_.groups[id].priority};
}

void GoodputTurns::Add(GroupId id, std::vector<PodId> pods) {
  waiting_[id] = std::move(pods);
  order_.try_emplace(id, static_cast<int32_t>(order_.size()));
  Renew(id);
}

bool GoodputTurns::Waits(GroupId id) const {
  const auto found = waiting_.find(id);
  return found != waiting_.end() && !found->second.empty();
}

GroupId GoodputTurns::HasTurnOf(GroupId id) const {
  if (!state_.groups[id].curve.empty()) {
    const auto lane = lanes_.find(LaneOf(id));
    if (lane != lanes_.end() && !lane->second.empty()) return std::get<2>(*lane->second.begin());
  }
  return Waits(id) ? id : kNone;
}

void GoodputTurns::Taken(GroupId id) {
  waiting_.at(id).pop_back();
  Renew(id);
}

void GoodputTurns::Renew(GroupId id) {
  if (state_.groups[id].curve.empty()) return;
  std::set<Key>& lane = lanes_[LaneOf(id)];
  if (const auto listed = keys_.find(id); listed != keys_.end()) {
    lane.erase(listed->second);
    keys_.erase(listed);
  }
  if (!Waits(id)) return;
  const Key key{-WorthOf(state_, id, Next(id)), order_.at(id), id};
  lane.insert(key);
  keys_[id] = key;
}

}  // namespace swell::sched
