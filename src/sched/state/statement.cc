#include "sched/state/statement.h"

#include "base/check.h"

namespace swell::sched {

void Statement::Save(PodId id) {
  const PodState& pod = state_.pods[id];
  log_.push_back({id, pod.phase, pod.node, pod.promise, pod.devices, pod.promise_devices});
}

void Statement::Bind(PodId pod, NodeId node, const DeviceSet& devices) {
  SWELL_CHECK(state_.pods[pod].phase == PodPhase::kPending);
  Save(pod);
  state_.SetPromise(pod, kNone, {});
  state_.SetPlace(pod, PodPhase::kBound, node, devices);
}

void Statement::Promise(PodId pod, NodeId node, const DeviceSet& devices) {
  Save(pod);
  state_.SetPromise(pod, node, devices);
}

void Statement::Evict(PodId pod) {
  SWELL_CHECK(state_.pods[pod].Holds());
  Save(pod);
  const PodState& placed = state_.pods[pod];
  const DeviceSet devices = placed.devices;
  state_.SetPlace(pod, PodPhase::kReleasing, placed.node, devices);
}

void Statement::Unevict(PodId pod, PodPhase phase) {
  SWELL_CHECK(state_.pods[pod].phase == PodPhase::kReleasing);
  Save(pod);
  const PodState& placed = state_.pods[pod];
  const DeviceSet devices = placed.devices;
  state_.SetPlace(pod, phase, placed.node, devices);
}

void Statement::DropPromise(PodId pod) {
  Save(pod);
  state_.SetPromise(pod, kNone, {});
}

void Statement::Rollback(const Mark& mark) {
  while (log_.size() > mark.size) {
    const Entry entry = log_.back();
    log_.pop_back();
    state_.SetPromise(entry.pod, entry.promise, entry.promise_devices);
    state_.SetPlace(entry.pod, entry.phase, entry.node, entry.devices);
  }
  state_.versions.room = mark.room_epoch;
}

void Statement::Commit() {
  log_.clear();
  start_ = Checkpoint();
}

}  // namespace swell::sched
