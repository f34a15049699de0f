#include "sched/state/needs.h"

#include <algorithm>

namespace swell::sched {

Needed NeededPods(const State& state, GroupId id) {
  const GroupState& group = state.groups[id];
  Needed needed;
  std::vector<int32_t> missing(group.sets.size());
  int32_t total = 0;
  for (size_t s = 0; s < group.sets.size(); ++s) {
    const SetState& set = group.sets[s];
    if (set.promised > 0) {  // its room is on the way; nothing more until it is there
      needed.met = false;
      return needed;
    }
    missing[s] = std::max(0, set.Minimum() - set.holding - set.moving);
    if (missing[s] > 0) needed.met = false;
    if (missing[s] > set.pending && needed.short_set == kNone) {
      needed.short_set = static_cast<int32_t>(s);
    }
    total += missing[s];
  }
  if (needed.met || needed.short_set != kNone) return needed;
  needed.pods.reserve(total);
  for (PodId pod : group.members) {
    const PodState& member = state.pods[pod];
    if (missing[member.set] == 0 || !member.Waits()) continue;
    --missing[member.set];
    needed.pods.push_back(pod);
    if (--total == 0) break;
  }
  return needed;
}

std::vector<PodId> ElasticPods(const State& state, GroupId id) {
  const GroupState& group = state.groups[id];
  std::vector<PodId> pods;
  for (const SetState& set : group.sets) {
    if (set.holding < set.Minimum() || set.promised > 0) return pods;
  }
  for (PodId pod : group.members) {
    if (state.pods[pod].Waits()) pods.push_back(pod);
  }
  return pods;
}

QueueAmounts NeedOf(const State& state, const std::vector<PodId>& pods) {
  QueueAmounts sum{};
  for (PodId pod : pods) {
    const QueueAmounts charge = state.ChargeOf(state.ShapeOf(pod), kNone);
    for (int r = 0; r < kQueueResources; ++r) sum[r] += charge[r];
  }
  return sum;
}

int64_t GpuPpmOf(const Shape& shape) {
  return shape.core[kGpu] * kPpm + shape.share_ppm * shape.share_devices;
}

int64_t GpuPpmOf(const State& state, const std::vector<PodId>& pods) {
  int64_t sum = 0;
  for (PodId pod : pods) sum += GpuPpmOf(state.ShapeOf(pod));
  return sum;
}

bool MayPreempt(const State& state, GroupId group, const std::vector<PodId>& pods) {
  return state.groups[group].may_preempt &&
         std::all_of(pods.begin(), pods.end(),
                     [&state](PodId pod) { return state.pods[pod].may_preempt; });
}

}  // namespace swell::sched
