// Keyframes: all that a model and its scheduler know, written by name. Caches are not written: they
// follow from the rest. What stands in one is read into a new model by replay.cc.
//
//   keyframe settings, pools, topologies, queues, past use, budgets, nodes, groups, pods, places of
//            those pods that are not where the watch said last, notes of groups, past use counted
//            until, cycles in a row that decided nothing
//
// - Threads: pure functions of a state that nobody changes meanwhile.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sched/cycle/cycle.h"
#include "sched/record/codec.h"
#include "sched/record/fields.h"
#include "sched/state/state.h"

namespace swell::sched {

// Where a pod is taken to be, where that differs from what the watch said.
struct PodPlace {
  std::string pod;
  PodPhase phase = PodPhase::kPending;
  bool implicit = false;
  bool assumed = false;
  bool stopped = false;
  std::string node;
  std::string promise;
  std::string hint;
  DeviceSet devices;
  DeviceSet promise_devices;
  DeviceSet seen_devices;
};
template <class C, Is<PodPlace> T>
void Fields(C& c, T& p) {
  c(p.pod, p.phase, p.implicit, p.assumed, p.stopped);
  c.Shared(p.node);
  c.Shared(p.promise);
  c.Shared(p.hint);
  c(p.devices, p.promise_devices, p.seen_devices);
}

// What the scheduler noted of a group.
struct GroupNote {
  std::string group;
  WallTime stale_since;
  WallTime moved_at;
  uint64_t reason_hash = 0;
  bool noticed = false;
};
template <class C, Is<GroupNote> T>
void Fields(C& c, T& n) {
  c.Shared(n.group);
  c(n.stale_since, n.moved_at, n.reason_hash, n.noticed);
}

struct QueuePast {
  std::string queue;
  std::vector<std::array<double, kQueueResources>> by_pool;
};
template <class C, Is<QueuePast> T>
void Fields(C& c, T& p) {
  c(p.queue, p.by_pool);
}

void WriteKeyframe(Packer& out,
                   const State& state,
                   const Settings& settings,
                   const CycleMemory& memory);

}  // namespace swell::sched
