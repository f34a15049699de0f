// Model: changes that arrive from watches, and what was assumed.
#include "sched/model.h"

#include "base/check.h"
#include "sched/cycle/disruptions.h"
#include "sched/record/recorder.h"
#include "sched/state/state.h"

namespace swell::sched {
namespace {

bool IsTerminal(PodPhase phase) {
  return phase == PodPhase::kSucceeded || phase == PodPhase::kFailed;
}

// What a pod says, interned.
struct Seen {
  PodPhase phase = PodPhase::kPending;
  NodeId node = kNone;
  DeviceSet devices;
  bool implicit = false;
};

// Charges what the group's pods hold and ask to the project the pod names, with the pod's priority.
void ChargeAs(State& state, GroupId id, const PodInfo& info) {
  const QueueId queue = state.EnsureQueue(info.queue);
  GroupState& group = state.groups[id];
  for (PodId pod : group.members) state.Count(pod, -1);
  group.queue = queue;
  group.queue_name = info.queue;
  group.priority = info.priority;
  group.preemptible = info.preemptible;
  for (PodId pod : group.members) state.Count(pod, +1);
  state.lists.waiting.TouchRank(id);
  ++state.versions.model;
}

// A pod without a PodGroup is a group of one, made of what the pod says.
void UpdateImplicitGroup(State& state, GroupId id, const PodInfo& info) {
  GroupState& group = state.groups[id];
  if (group.known && group.uid == info.uid && group.queue_name == info.queue &&
      group.priority == info.priority && group.preemptible == info.preemptible &&
      group.may_preempt == info.may_preempt) {
    return;
  }
  group.known = true;
  group.implicit = true;
  group.uid = info.uid;
  group.may_preempt = info.may_preempt;
  group.creation = info.creation;
  ChargeAs(state, id, info);
}

// A gang that nobody has described yet, or that was forgotten before this process began: what its
// pods hold is charged as they say.
void ChargeAsTold(State& state, GroupId id, const PodInfo& info) {
  const GroupState& group = state.groups[id];
  if (group.known || !group.queue_name.empty() || info.queue.empty()) return;
  ChargeAs(state, id, info);
}

// A group is the work of whom its pods name.
void SetUser(State& state, GroupId id, const std::string& name) {
  if (name.empty() || state.users[state.groups[id].user] == name) return;
  const UserId user = state.EnsureUser(name);
  GroupState& group = state.groups[id];
  for (PodId pod : group.members) state.Count(pod, -1);
  group.user = user;
  for (PodId pod : group.members) state.Count(pod, +1);
  ++state.versions.model;
  ++state.versions.room;
}

// Reads where the watch says the pod is. A place that was assumed with devices keeps them when the
// event confirms the node without naming any.
Seen ReadPlace(State& state, const PodState& pod, ShapeId shape, const PodInfo& info) {
  Seen seen;
  seen.phase = info.phase;
  if (!info.node.empty() && !IsTerminal(info.phase)) {
    seen.node = state.EnsureNode(info.node);
    if (info.phase == PodPhase::kPending) seen.phase = PodPhase::kBound;
  } else if (info.phase == PodPhase::kBound || info.phase == PodPhase::kRunning) {
    seen.phase = PodPhase::kPending;  // placed nowhere: not placed
  }
  if (seen.node == kNone || !state.shapes[shape].UsesDevices()) return seen;
  seen.devices = DeviceSet::From(info.gpu_devices);
  if (seen.devices.Empty()) {
    if (pod.Placed() && pod.node == seen.node && !pod.implicit_devices) {
      seen.devices = pod.devices;
    } else {
      seen.implicit = true;
      if (pod.Placed() && pod.node == seen.node) seen.devices = pod.devices;
    }
  }
  return seen;
}

// Whether an event leaves an assumption standing: it is older than our decision.
bool Outdated(const PodState& pod, const Seen& seen) {
  if (!pod.assumed) return false;
  if (pod.phase == PodPhase::kBound) return seen.phase == PodPhase::kPending;
  if (pod.phase == PodPhase::kReleasing) {
    // Evicted while its binding was under way: it is still seen unbound.
    if (seen.phase == PodPhase::kPending) return pod.seen_node == kNone;
    return (seen.phase == PodPhase::kBound || seen.phase == PodPhase::kRunning) &&
           seen.node == pod.node;
  }
  return false;
}

void ApplyPlace(State& state, PodId id, const Seen& seen) {
  PodState& pod = state.pods[id];
  const bool outdated = Outdated(pod, seen);
  pod.seen_phase = seen.phase;
  pod.seen_node = seen.node;
  pod.seen_devices = seen.devices;
  if (outdated) return;
  pod.assumed = false;
  if (pod.phase == seen.phase && pod.node == seen.node && pod.devices == seen.devices &&
      pod.implicit_devices == seen.implicit) {
    return;
  }
  const bool same_room = pod.Holds() && pod.node == seen.node && pod.devices == seen.devices &&
                         pod.implicit_devices == seen.implicit &&
                         (seen.phase == PodPhase::kBound || seen.phase == PodPhase::kRunning);
  const NodeId old_node = pod.node;
  if (pod.promise != kNone && (seen.node != kNone || IsTerminal(seen.phase)) &&
      seen.phase != PodPhase::kReleasing) {
    state.SetPromise(id, kNone, {});
  }
  if (pod.implicit_devices != seen.implicit) {
    state.Count(id, -1);
    pod.implicit_devices = seen.implicit;
    state.Count(id, +1);
  }
  state.SetPlace(id, seen.phase, seen.node, seen.devices);
  if (!same_room) ++state.versions.model;
  if (seen.node != kNone) state.AssignImplicitDevices(seen.node);
  if (old_node != kNone && old_node != seen.node) {
    state.AssignImplicitDevices(old_node);
    state.FreeNodeIfUnused(old_node);
  }
}

// Everything but the place. Returns with the pod counted.
void ApplySpec(
    State& state, PodId id, const PodInfo& info, GroupId group, ShapeId shape, bool is_new) {
  PodState& pod = state.pods[id];
  const size_t slash = info.key.find('/');
  const LabelSetId labels =
      state.terms.AcquireLabels(std::string_view(info.key).substr(0, slash), info.labels);
  const bool gated = !info.scheduling_gates.empty();
  const int64_t member_priority = info.member_priority ? *info.member_priority : INT64_MIN;
  const bool same = !is_new && pod.shape == shape && pod.labels == labels && pod.group == group &&
                    pod.gated == gated && pod.ours == info.ours && pod.pod_set == info.pod_set &&
                    pod.member_priority == member_priority && pod.creation == info.creation &&
                    pod.obstacle == info.obstacle && pod.may_preempt == info.may_preempt &&
                    pod.comes_back == info.comes_back;
  pod.start = info.start;
  state.SetCheckpoint(id, info.checkpoint);
  pod.restart_cost_gpu_s = std::max(0.0, info.restart_cost_gpu_s);
  const Duration max_runtime = std::max(Duration::zero(), info.max_runtime);
  if (max_runtime != pod.max_runtime && group != kNone) state.lists.waiting.Touch(group);
  pod.max_runtime = max_runtime;
  if (same) {
    state.ReleaseShape(shape);
    state.terms.ReleaseLabels(labels);
    return;
  }
  ++state.versions.model;
  ++state.versions.room;
  const GroupId old_group = pod.group;
  if (!is_new) {
    state.Count(id, -1);
    if (pod.group != kNone) state.RemoveMember(id);
    state.ReleaseShape(pod.shape);
    state.terms.ReleaseLabels(pod.labels);
  }
  pod.shape = shape;
  pod.labels = labels;
  pod.group = group;
  pod.gated = gated;
  pod.blocked = !info.obstacle.empty();
  pod.obstacle = info.obstacle;
  pod.may_preempt = info.may_preempt;
  pod.comes_back = info.comes_back;
  pod.ours = info.ours;
  pod.pod_set = info.pod_set;
  pod.member_priority = member_priority;
  pod.creation = info.creation;
  pod.set = group == kNone ? 0 : state.ResolveSet(state.groups[group], info.pod_set);
  if (group != kNone) state.AddMember(id);
  state.Count(id, +1);
  if (old_group != kNone && old_group != group) {
    state.UpdateBelow(old_group);
    state.FreeGroupIfUnused(old_group);
  }
}

}  // namespace

Model::Model() : state_(std::make_unique<State>()) {}
Model::~Model() = default;

void Model::UpsertPod(const PodInfo& info) {
  if (recorder_ != nullptr) recorder_->Told(Tape::kPod, info);
  State& state = *state_;
  PodId id = state.FindPod(info.key);
  if (id != kNone && state.pods[id].uid != info.uid) {
    RemovePod(info.key);
    id = kNone;
  }
  const bool is_new = id == kNone;
  if (is_new) {
    id = state.NewPod(info.key);
    state.pods[id].uid = info.uid;
  }
  GroupId group = kNone;
  if (info.ours) {
    group = state.EnsureGroup(info.group.empty() ? "/" + info.key : info.group);
    if (info.group.empty()) {
      UpdateImplicitGroup(state, group, info);
    } else {
      ChargeAsTold(state, group, info);
    }
    SetUser(state, group, info.user);
  }
  const ShapeId shape = state.AcquireShape(info);
  ApplySpec(state, id, info, group, shape, is_new);
  ApplyPlace(state, id, ReadPlace(state, state.pods[id], shape, info));
  if (!info.nominated_node.empty() && state.pods[id].hint == kNone) {
    state.SetHint(id, state.EnsureNode(info.nominated_node));
  }
}

void Model::RemovePod(std::string_view key) {
  if (recorder_ != nullptr) recorder_->Named(Tape::kPodGone, key);
  State& state = *state_;
  const PodId id = state.FindPod(key);
  if (id == kNone) return;
  PodState& pod = state.pods[id];
  const NodeId node = pod.node;
  const NodeId promise = pod.promise;
  const GroupId group = pod.group;
  DisruptionLedger::Unmark(state, id);
  state.SetHint(id, kNone);
  state.Count(id, -1);
  if (group != kNone) {
    state.RemoveMember(id);
    state.UpdateBelow(group);
    state.FreeGroupIfUnused(group);
  }
  state.ReleaseShape(pod.shape);
  state.terms.ReleaseLabels(pod.labels);
  state.ids.pods.erase(state.ids.pods.find(key));
  pod = PodState{};
  state.ids.free_pods.push_back(id);
  for (NodeId place : {node, promise}) {
    if (place == kNone) continue;
    state.AssignImplicitDevices(place);
    state.FreeNodeIfUnused(place);
  }
  ++state.versions.model;
  ++state.versions.room;
}

void Model::AssumeBound(std::string_view pod,
                        std::string_view node,
                        const std::vector<int>& gpu_devices) {
  if (recorder_ != nullptr) recorder_->AssumedBound(pod, node, gpu_devices);
  State& state = *state_;
  const PodId id = state.FindPod(pod);
  const NodeId place = state.FindNode(node);
  if (id == kNone || place == kNone || state.pods[id].phase != PodPhase::kPending) return;
  state.SetPromise(id, kNone, {});
  const bool devices = state.ShapeOf(id).UsesDevices();
  state.pods[id].implicit_devices = devices && gpu_devices.empty();
  state.SetPlace(id, PodPhase::kBound, place, devices ? DeviceSet::From(gpu_devices) : DeviceSet{});
  state.pods[id].assumed = true;
  state.AssignImplicitDevices(place);
  ++state.versions.model;
}

void Model::AssumeEvicted(std::string_view pod) {
  if (recorder_ != nullptr) recorder_->Named(Tape::kAssumeEvicted, pod);
  State& state = *state_;
  const PodId id = state.FindPod(pod);
  if (id == kNone || !state.pods[id].Holds()) return;
  const PodState& placed = state.pods[id];
  state.SetPlace(id, PodPhase::kReleasing, placed.node, placed.devices);
  state.pods[id].assumed = true;
  ++state.versions.model;
}

void Model::LiftPromise(std::string_view key) {
  if (recorder_ != nullptr) recorder_->Named(Tape::kLiftPromise, key);
  State& state = *state_;
  const PodId id = state.FindPod(key);
  if (id == kNone || state.pods[id].promise == kNone) return;
  state.SetHint(id, state.pods[id].promise);
  state.SetPromise(id, kNone, {});
  ++state.versions.model;
}

void Model::Forget(std::string_view key) {
  if (recorder_ != nullptr) recorder_->Named(Tape::kForget, key);
  State& state = *state_;
  const PodId id = state.FindPod(key);
  if (id == kNone) return;
  PodState& pod = state.pods[id];
  if (!pod.assumed && pod.promise == kNone) return;
  pod.assumed = false;
  DisruptionLedger::Unmark(state, id);
  state.SetHint(id, kNone);
  const NodeId left = pod.node;
  state.SetPromise(id, kNone, {});
  state.SetPlace(id, pod.seen_phase, pod.seen_node, pod.seen_devices);
  if (left != kNone && left != pod.node) state.FreeNodeIfUnused(left);
  ++state.versions.model;
}

size_t Model::pod_count() const { return state_->ids.pods.size(); }
size_t Model::node_count() const { return state_->index.by_rank.size(); }
uint64_t Model::version() const { return state_->versions.model; }

}  // namespace swell::sched
