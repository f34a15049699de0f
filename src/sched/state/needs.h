// Needs: which pods of a group start together, and what they ask for.
// - Threads: none; pure functions over a State.
#pragma once

#include <vector>

#include "sched/state/state.h"

namespace swell::sched {

struct Needed {
  std::vector<PodId> pods;    // what the minima lack, in member order; empty: minima are met
  int32_t short_set = kNone;  // a pod set that has too few pods to reach its minimum
  bool met = true;
};
Needed NeededPods(const State& state, GroupId group);
// Members beyond the minima that wait, in member order; empty while minima are not met.
std::vector<PodId> ElasticPods(const State& state, GroupId group);
// What the pods ask of their queue, as it is charged while they wait.
QueueAmounts NeedOf(const State& state, const std::vector<PodId>& pods);
// What one or more pods ask of GPUs, parts of one included; a part by memory depends on the GPU and
// counts as nothing.
int64_t GpuPpmOf(const Shape& shape);
int64_t GpuPpmOf(const State& state, const std::vector<PodId>& pods);
// Whether others may be stopped or moved for these pods of the group (preemptionPolicy).
bool MayPreempt(const State& state, GroupId group, const std::vector<PodId>& pods);

}  // namespace swell::sched
