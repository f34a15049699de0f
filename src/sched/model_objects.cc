// Model: nodes, groups, queues, pools and topologies as they arrive from watches.
#include "sched/cycle/disruptions.h"
#include "sched/model.h"
#include "sched/record/recorder.h"
#include "sched/state/state.h"
#include "sched/state/unhealthy.h"

namespace swell::sched {
namespace {

// Takes everything placed or promised on a node out of the counts while the node changes.
class NodeChange {
 public:
  NodeChange(State& state, NodeId node) : state_(state), pods_(state.nodes[node].pods) {
    const NodeState& n = state.nodes[node];
    for (PodId pod : n.promises) {
      if (state.pods[pod].node != node) pods_.push_back(pod);
    }
    for (PodId pod : pods_) state_.Count(pod, -1);
  }
  ~NodeChange() {
    for (PodId pod : pods_) state_.Count(pod, +1);
  }
  NodeChange(const NodeChange&) = delete;
  NodeChange& operator=(const NodeChange&) = delete;

 private:
  State& state_;
  std::vector<PodId> pods_;
};

bool HasSoftTaint(const NodeInfo& node) {
  return std::any_of(node.taints.begin(), node.taints.end(), [](const Taint& taint) {
    return taint.effect == TaintEffect::kPreferNoSchedule;
  });
}

// Unhealthy devices count as full, beside what still runs on them.
void CountUnhealthy(NodeState& node, int sign) {
  UnhealthyDevices(node.info).ForEach([&](int i) {
    if (static_cast<size_t>(i) >= node.devices.size()) node.devices.resize(i + 1);
    node.devices[i].used_ppm += sign * static_cast<int32_t>(kPpm);
  });
}

// After its kinds are known.
void ReadCounters(State& state, NodeState& node) {
  node.counters.reset();
  const auto said = node.info.labels.find(std::string(kDeviceCounters));
  if (said == node.info.labels.end()) return;
  DeviceCounters counters = ReadDeviceCounters(said->second);
  for (const auto& [id, devices] : node.kinds) {
    DeviceUses uses =
        ReadKindUses(node.info.labels.find(state.resource_names[id])->second, counters);
    if (!uses.empty()) counters.of_kind.emplace(id, std::move(uses));
  }
  node.counters = std::make_shared<const DeviceCounters>(std::move(counters));
}

void ReadAllocatable(State& state, NodeState& node, const Resources& r) {
  auto clamp = [](int64_t amount) { return std::max<int64_t>(0, amount); };
  node.allocatable = {clamp(r.cpu_milli), clamp(r.memory_bytes), clamp(r.pods),
                      clamp(r.ephemeral_bytes), 0};
  node.ext_allocatable.clear();
  node.kinds.clear();
  node.has_gpus = false;
  node.gpu_count = 0;
  for (const auto& [name, amount] : r.extended) {
    if (amount <= 0) continue;
    if (name == kGpuResource) {
      const int64_t devices = amount + UnhealthyDevices(node.info).Count();
      node.gpu_count = static_cast<int>(std::min<int64_t>(devices, kDevicesMax));
      node.allocatable[kGpu] = std::min<int64_t>(amount, kDevicesMax);
      node.has_gpus = true;
      continue;
    }
    const int id = state.EnsureResource(name);
    if (node.ext_allocatable.size() <= static_cast<size_t>(id)) node.ext_allocatable.resize(id + 1);
    node.ext_allocatable[id] = amount;
    if (state.resource_gpus[id] > 0) node.has_gpus = true;
    const auto kind = node.info.labels.find(name);
    if (state.resource_kinds[id] != 0 && kind != node.info.labels.end()) {
      node.kinds.emplace_back(id, ReadDeviceKind(kind->second));
      node.kinds.back().second.ForEach([&node](int i) {
        if (static_cast<size_t>(i) >= node.devices.size()) node.devices.resize(i + 1);
      });
    }
  }
  if (node.devices.size() < static_cast<size_t>(node.gpu_count)) {
    node.devices.resize(node.gpu_count);
  }
  ReadCounters(state, node);
}

void Leave(State& state, QueueId parent, QueueId child) {
  if (parent != kNone) std::erase(state.queues[parent].children, child);
}

// Whether `ancestor` is `queue` or above it.
bool IsAbove(const State& state, QueueId ancestor, QueueId queue) {
  for (size_t depth = 0; queue != kNone && depth <= state.queues.size(); ++depth) {
    if (queue == ancestor) return true;
    queue = state.queues[queue].parent;
  }
  return false;
}

void SetGroupFields(GroupState& group, const GroupInfo& info) {
  group.uid = info.uid;
  group.queue_name = info.queue;
  group.priority = info.priority;
  group.preemptible = info.preemptible;
  group.may_preempt = info.may_preempt;
  group.unit = info.preempt_unit;
  group.creation = info.creation;
  group.min_runtime = info.min_runtime;
  if (info.stale_since.unix_ns != 0) group.stale_since = info.stale_since;
  group.moved_at = std::max(group.moved_at, info.moved_at);
  group.sets.clear();
  for (const PodSet& said : info.pod_sets) {
    SetState set;
    set.name = said.name;
    set.min_member = std::max(0, said.min_member);
    set.topology = said.topology;
    for (size_t i = 0; i < info.groups.size(); ++i) {
      if (!said.parent.empty() && info.groups[i].name == said.parent) {
        set.subgroup = static_cast<int32_t>(i);
      }
    }
    group.sets.push_back(std::move(set));
  }
  if (group.sets.empty()) group.sets.resize(1);
}

void SetGoodput(State& state, GroupId id, const GoodputInfo& info) {
  GroupState& group = state.groups[id];
  group.curve = goodput::Curve(info.curve);
  group.curve_measured_at = info.measured_at;
  group.resize_cost = std::max(Duration::zero(), info.resize_cost.value_or(kResizeCostUnknown));
  group.curve_set = 0;
  for (size_t i = 0; i < group.sets.size(); ++i) {
    if (!info.pod_set.empty() && group.sets[i].name == info.pod_set) {
      group.curve_set = static_cast<int32_t>(i);
    }
  }
  if (group.curve.empty()) {
    state.lists.curved.erase(id);
  } else {
    state.lists.curved.insert(id);
  }
}

}  // namespace

void Model::UpsertNode(const NodeInfo& info) {
  if (recorder_ != nullptr) recorder_->Told(Tape::kNode, info);
  State& state = *state_;
  const NodeId id = state.EnsureNode(info.name);
  NodeState& node = state.nodes[id];
  if (node.present && node.info == info) return;
  {
    NodeChange change(state, id);
    const bool reranked = !node.present || node.info.labels != info.labels ||
                          node.info.gpu_memory_mib != info.gpu_memory_mib ||
                          node.info.allocatable.extended != info.allocatable.extended;
    if (reranked) state.versions.ranks_dirty = true;
    if (node.present) state.counts.soft_taints -= HasSoftTaint(node.info);
    state.counts.soft_taints += HasSoftTaint(info);
    CountUnhealthy(node, -1);
    node.present = true;
    node.info = info;
    node.version = ++state.versions.nodes;
    ReadAllocatable(state, node, info.allocatable);
    CountUnhealthy(node, +1);
    state.Reindex(node);
  }
  state.AssignImplicitDevices(id);
  ++state.versions.model;
  ++state.versions.room;
}

void Model::RemoveNode(std::string_view name) {
  if (recorder_ != nullptr) recorder_->Named(Tape::kNodeGone, name);
  State& state = *state_;
  const NodeId id = state.FindNode(name);
  if (id == kNone || !state.nodes[id].present) return;
  NodeState& node = state.nodes[id];
  {
    NodeChange change(state, id);
    state.counts.soft_taints -= HasSoftTaint(node.info);
    NodeInfo nameless;
    nameless.name = node.info.name;
    CountUnhealthy(node, -1);
    node.present = false;
    node.info = std::move(nameless);
    node.version = ++state.versions.nodes;
    ReadAllocatable(state, node, node.info.allocatable);
    state.versions.ranks_dirty = true;
  }
  state.FreeNodeIfUnused(id);
  ++state.versions.model;
}

void Model::UpsertGroup(const GroupInfo& info) {
  if (recorder_ != nullptr) recorder_->Told(Tape::kGroup, info);
  State& state = *state_;
  const GroupId id = state.EnsureGroup(info.key);
  const QueueId queue = state.EnsureQueue(info.queue);
  GroupState& group = state.groups[id];
  if (group.info && *group.info == info) return;
  for (PodId pod : group.members) state.Count(pod, -1);
  group.info = std::make_unique<GroupInfo>(info);
  group.known = true;
  group.queue = queue;
  SetGroupFields(group, info);
  if (info.stale_since.unix_ns != 0) state.lists.said_stale.insert(id);
  SetGoodput(state, id, info.goodput);
  for (PodId pod : group.members) {
    state.pods[pod].set = state.ResolveSet(group, state.pods[pod].pod_set);
  }
  for (PodId pod : group.members) state.Count(pod, +1);
  state.UpdateBelow(id);
  group.reason_hash = 0;
  group.summary_hash = 0;
  state.lists.waiting.TouchRank(id);
  ++state.versions.model;
  ++state.versions.room;
}

void Model::RemoveGroup(std::string_view key) {
  if (recorder_ != nullptr) recorder_->Named(Tape::kGroupGone, key);
  State& state = *state_;
  const GroupId id = state.FindGroup(key);
  if (id == kNone || !state.groups[id].info) return;
  GroupState& group = state.groups[id];
  for (PodId pod : group.members) state.Count(pod, -1);
  group.info.reset();
  group.known = false;
  SetGoodput(state, id, {});
  for (PodId pod : group.members) state.Count(pod, +1);
  state.UpdateBelow(id);
  state.FreeGroupIfUnused(id);
  ++state.versions.model;
}

void Model::UpsertQueue(const QueueInfo& info) {
  if (recorder_ != nullptr) recorder_->Told(Tape::kQueue, info);
  State& state = *state_;
  if (info.name.empty()) return;
  const QueueId id = state.EnsureQueue(info.name);
  QueueId parent = info.parent.empty() ? kNone : state.EnsureQueue(info.parent);
  if (state.queues[id].known && state.queues[id].info == info) return;
  if (parent != kNone && IsAbove(state, id, parent)) parent = kNone;  // a cycle: treat as a root
  state.ChargePods(-1);
  QueueState& queue = state.queues[id];
  Leave(state, queue.parent, id);
  state.counts.known_queues += !queue.known;
  queue.known = true;
  queue.info = info;
  queue.parent = parent;
  if (parent != kNone) state.queues[parent].children.push_back(id);
  state.ReadQueueLimits(id);
  state.versions.queues_dirty = true;
  state.ChargePods(+1);
  ++state.versions.model;
  ++state.versions.room;
}

void Model::RemoveQueue(std::string_view name) {
  if (recorder_ != nullptr) recorder_->Named(Tape::kQueueGone, name);
  State& state = *state_;
  auto it = state.ids.queues.find(name);
  if (it == state.ids.queues.end() || !state.queues[it->second].known) return;
  state.ChargePods(-1);
  QueueState& queue = state.queues[it->second];
  Leave(state, queue.parent, it->second);
  const std::vector<QueueId> children = queue.children;
  const std::string own_name = queue.name;
  queue = QueueState{};  // the record stays: groups may name it, children hang on it
  queue.name = own_name;
  queue.children = children;
  state.ReadQueueLimits(it->second);
  state.versions.queues_dirty = true;
  --state.counts.known_queues;
  state.ChargePods(+1);
  ++state.versions.model;
}

void Model::UpsertPool(const PoolInfo& info) {
  if (recorder_ != nullptr) recorder_->Told(Tape::kPool, info);
  std::vector<PoolInfo>& pools = state_->pools;
  auto it = std::find_if(pools.begin(), pools.end() - 1,
                         [&](const PoolInfo& pool) { return pool.name >= info.name; });
  const bool known = it != pools.end() - 1 && it->name == info.name;
  if (known && *it == info) return;
  state_->ChangePools([&] {
    if (known) {
      *it = info;
    } else {
      pools.insert(it, info);
    }
  });
}

void Model::RemovePool(std::string_view name) {
  if (recorder_ != nullptr) recorder_->Named(Tape::kPoolGone, name);
  std::vector<PoolInfo>& pools = state_->pools;
  auto it = std::find_if(pools.begin(), pools.end() - 1,
                         [&](const PoolInfo& pool) { return pool.name == name; });
  if (it == pools.end() - 1) return;
  state_->ChangePools([&] { pools.erase(it); });
}

void Model::UpsertTopology(const TopologyInfo& info) {
  if (recorder_ != nullptr) recorder_->Told(Tape::kTopology, info);
  auto [it, added] = state_->topologies.try_emplace(info.name, info);
  if (!added && it->second == info) return;
  it->second = info;
  ++state_->versions.model;
  ++state_->versions.room;
}

void Model::RemoveTopology(std::string_view name) {
  if (recorder_ != nullptr) recorder_->Named(Tape::kTopologyGone, name);
  auto it = state_->topologies.find(name);
  if (it == state_->topologies.end()) return;
  state_->topologies.erase(it);
  ++state_->versions.model;
}

void Model::UpsertBudget(const BudgetInfo& info) {
  if (recorder_ != nullptr) recorder_->Told(Tape::kBudget, info);
  DisruptionLedger::ForgetStopped(*state_, info);
  auto [it, added] = state_->budgets.try_emplace(info.key, info);
  if (!added && it->second == info) return;
  it->second = info;
  ++state_->versions.model;
}

void Model::RemoveBudget(std::string_view key) {
  if (recorder_ != nullptr) recorder_->Named(Tape::kBudgetGone, key);
  auto it = state_->budgets.find(key);
  if (it == state_->budgets.end()) return;
  state_->budgets.erase(it);
  ++state_->versions.model;
}

}  // namespace swell::sched
