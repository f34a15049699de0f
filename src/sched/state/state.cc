#include "sched/state/state.h"

#include <numeric>

#include "base/check.h"
#include "base/natural_order.h"

namespace swell::sched {
namespace {

void AddScaled(CoreAmounts& to, const CoreAmounts& amounts, int sign) {
  for (int r = 0; r < kCoreCount; ++r) to[r] += sign * amounts[r];
}

void AddScaled(std::vector<int64_t>& to, const Shape& shape, int sign) {
  for (const auto& [resource, amount] : shape.extended) {
    if (to.size() <= static_cast<size_t>(resource)) to.resize(resource + 1);
    to[resource] += sign * amount;
  }
}

void RemovePod(std::vector<PodId>& list, PodId pod) {
  auto it = std::find(list.begin(), list.end(), pod);
  SWELL_CHECK(it != list.end());
  *it = list.back();
  list.pop_back();
}

void AddAmounts(QueueAmounts& to, const QueueAmounts& more, int sign) {
  for (int r = 0; r < kQueueResources; ++r) to[r] += sign * more[r];
}

bool Constrains(const TopologyConstraint& topology) {
  return !topology.required.empty() || !topology.preferred.empty();
}

}  // namespace

bool HasTopology(const GroupState& group) {
  if (!group.info) return false;
  return Constrains(group.info->topology) ||
         std::any_of(group.info->groups.begin(), group.info->groups.end(),
                     [](const SubGroup& g) { return Constrains(g.topology); }) ||
         std::any_of(group.sets.begin(), group.sets.end(),
                     [](const SetState& s) { return Constrains(s.topology); });
}

State::State() {
  pools.emplace_back();
  pool_facts.filters.emplace_back();
  pool_facts.live = {0};
  queues.emplace_back();
  queues[0].known = true;
  users.emplace_back();
  ReadQueueLimits(0);
}

void State::Reindex(NodeState& node) {
  node.idle_now = 0;
  node.idle_future = 0;
  bool shared = false;
  int64_t free_ppm = 0;
  for (int i = 0; i < node.gpu_count; ++i) {
    const Device& device = node.devices[i];
    free_ppm += std::max<int64_t>(0, device.FreeInFuture());
    node.idle_now += device.IdleNow();
    node.idle_future += device.IdleInFuture();
    shared |= !device.IdleNow() && device.FreeNow() > 0 && device.FreeInFuture() > 0;
  }
  if (!node.present || versions.ranks_dirty) return;
  cycle.touched.push_back(node.rank);
  pool_facts.free_gpu_ppm[node.pool] += free_ppm - node.free_ppm;
  node.free_ppm = free_ppm;
  const int64_t cpu = node.allocatable[kCpu];
  const int64_t free = std::clamp<int64_t>(cpu - node.used[kCpu], 0, cpu);
  const int bucket = cpu > 0 ? static_cast<int>(free * (kCpuBuckets - 1) / cpu) : 0;
  index.Move(node.pool, node.has_gpus, node.rank, node.slot,
             {node.gpu_count > 0 ? node.idle_now : -1, node.gpu_count > 0 ? node.idle_future : -1,
              shared ? node.idle_now : -1, bucket});
}

int64_t State::FreeGpuPpm(int pool) const {
  if (pool != kNone) return pool_facts.free_gpu_ppm[pool];
  return std::accumulate(pool_facts.free_gpu_ppm.begin(), pool_facts.free_gpu_ppm.end(),
                         int64_t{0});
}

namespace {

// The part of a GPU, rounded up.
int64_t PpmOfMemory(int64_t mib, int64_t of_mib) {
  return std::max(kSharePpmMin, (mib * kPpm + of_mib - 1) / of_mib);
}

}  // namespace

int64_t State::DevicePpm(const Shape& shape, const NodeState& node) const {
  if (!shape.Shares()) return kPpm;
  if (shape.share_mib <= 0) return shape.share_ppm;
  const int64_t mib = node.info.gpu_memory_mib;
  return mib > 0 ? PpmOfMemory(shape.share_mib, mib) : kPpm + 1;
}

QueueAmounts State::ChargeOf(const Shape& shape, NodeId node) const {
  QueueAmounts charge{shape.core[kGpu] * kPpm, shape.core[kCpu], shape.core[kMemory]};
  for (const auto& [resource, amount] : shape.extended) {
    charge[kQueueGpu] += resource_gpus[resource] * amount * kPpm;
    charge[kQueueGpu] += resource_part_ppm[resource] * amount;
  }
  if (shape.Shares()) {
    int64_t ppm = shape.share_ppm;
    if (shape.share_mib > 0) {
      const int64_t mib = node != kNone ? nodes[node].info.gpu_memory_mib : smallest_gpu_mib;
      ppm = mib > 0 ? PpmOfMemory(shape.share_mib, mib) : kPpm;
    }
    charge[kQueueGpu] += ppm * shape.share_devices;
  }
  return charge;
}

const Shape::Verdict& State::VerdictOf(ShapeId shape_id, NodeId node_id) {
  Shape& shape = shapes[shape_id];
  if (shape.verdicts.size() <= static_cast<size_t>(node_id)) shape.verdicts.resize(nodes.size());
  Shape::Verdict& verdict = shape.verdicts[node_id];
  const NodeState& node = nodes[node_id];
  if (verdict.node_version != node.version) {
    verdict = CheckNode(node.info, shape);
    verdict.node_version = node.version;
  }
  return verdict;
}

bool State::JobBefore(GroupId a, GroupId b) const {
  const GroupState& left = groups[a];
  const GroupState& right = groups[b];
  if (left.priority != right.priority) return left.priority > right.priority;
  if (left.creation != right.creation) return left.creation < right.creation;
  // Creation times have whole seconds, and people submit many jobs in one.
  return CompareNatural(left.key, right.key) < 0;
}

bool State::MemberBefore(PodId a, PodId b) const {
  const PodState& left = pods[a];
  const PodState& right = pods[b];
  if (left.member_priority != right.member_priority) {
    return left.member_priority > right.member_priority;
  }
  if (left.creation != right.creation) return left.creation < right.creation;
  return left.key < right.key;
}

bool State::GroupWaits(const GroupState& group) const {
  if (!group.live) return false;
  return std::any_of(group.sets.begin(), group.sets.end(), [](const SetState& set) {
    return set.pending + set.blocked + set.promised > 0;
  });
}

void NodeState::Prefetch() const {
  for (const void* part : {static_cast<const void*>(&present), static_cast<const void*>(&devices),
                           static_cast<const void*>(&allocatable),
                           static_cast<const void*>(&releasing), static_cast<const void*>(&pods)}) {
    __builtin_prefetch(part);
  }
}

void State::PrefetchAt(const std::vector<PodId>& list, size_t i) const {
  // Each step needs what the one before it fetched.
  constexpr size_t kToPods = 12;
  constexpr size_t kToNodes = 8;
  constexpr size_t kToDevices = 4;
  const auto node_of = [this](PodId id) -> const NodeState* {
    const PodState& pod = pods[id];
    const NodeId node = pod.node != kNone      ? pod.node
                        : pod.promise != kNone ? pod.promise
                                               : pod.hint;
    return node == kNone ? nullptr : &nodes[node];
  };
  if (i + kToPods < list.size()) {
    const PodState& pod = pods[list[i + kToPods]];
    for (const void* part :
         {static_cast<const void*>(&pod.group), static_cast<const void*>(&pod.charge),
          static_cast<const void*>(&pod.key)}) {
      __builtin_prefetch(part);
    }
  }
  if (i + kToNodes < list.size()) {
    const PodId id = list[i + kToNodes];
    if (pods[id].group != kNone) __builtin_prefetch(&groups[pods[id].group]);
    if (const NodeState* node = node_of(id)) node->Prefetch();
  }
  if (i + kToDevices < list.size()) {
    const PodId id = list[i + kToDevices];
    if (pods[id].group != kNone) __builtin_prefetch(groups[pods[id].group].sets.data());
    if (const NodeState* node = node_of(id)) {
      __builtin_prefetch(node->devices.data());
      __builtin_prefetch(node->promises.data());
    }
  }
}

const std::string& State::GroupName(const GroupState& group) const {
  static const std::string kEmpty;
  return group.implicit ? kEmpty : group.key;
}

bool State::QueueUnknown(const GroupState& group) const {
  return counts.known_queues > 0 && !group.queue_name.empty() && !queues[group.queue].known;
}

void State::CountNode(PodId id, int sign) {
  PodState& pod = pods[id];
  if (!pod.Placed()) return;
  NodeState& node = nodes[pod.node];
  const Shape& shape = shapes[pod.shape];
  const int64_t ppm = DevicePpm(shape, node);
  AddScaled(node.used, shape.core, sign);
  AddScaled(node.ext_used, shape, sign);
  pod.devices.ForEach([&](int i) {
    if (static_cast<size_t>(i) >= node.devices.size()) node.devices.resize(i + 1);
    node.devices[i].used_ppm += sign * static_cast<int32_t>(ppm);
  });
  if (pod.phase == PodPhase::kReleasing) CountReleasing(id, sign);
  node.implicit_pods += sign * pod.implicit_devices;
  node.port_pods += sign * !shape.ports.empty();
  if (sign > 0) {
    pod.node_pos = static_cast<int32_t>(node.pods.size());
    node.pods.push_back(id);
  } else {
    const PodId last = node.pods.back();
    node.pods[pod.node_pos] = last;
    pods[last].node_pos = pod.node_pos;
    node.pods.pop_back();
    pod.node_pos = kNone;
  }
  Reindex(node);
}

// Counts the resources of the placed pod that will be released.
void State::CountReleasing(PodId id, int sign) {
  const PodState& pod = pods[id];
  NodeState& node = nodes[pod.node];
  const Shape& shape = shapes[pod.shape];
  const int64_t ppm = DevicePpm(shape, node);
  AddScaled(node.releasing, shape.core, sign);
  AddScaled(node.ext_releasing, shape, sign);
  node.releasing_pods += sign;
  counts.releasing_pods += sign;
  pod.devices.ForEach(
      [&](int i) { node.devices[i].releasing_ppm += sign * static_cast<int32_t>(ppm); });
}

void State::CountPromise(PodId id, int sign) {
  PodState& pod = pods[id];
  if (pod.promise == kNone) return;
  NodeState& node = nodes[pod.promise];
  const Shape& shape = shapes[pod.shape];
  const int64_t ppm = DevicePpm(shape, node);
  AddScaled(node.promised, shape.core, sign);
  AddScaled(node.ext_promised, shape, sign);
  pod.promise_devices.ForEach([&](int i) {
    if (static_cast<size_t>(i) >= node.devices.size()) node.devices.resize(i + 1);
    node.devices[i].promised_ppm += sign * static_cast<int32_t>(ppm);
  });
  node.port_pods += sign * !shape.ports.empty();
  if (sign > 0) {
    node.promises.push_back(id);
    lists.promised.Add(id);
  } else {
    RemovePod(node.promises, id);
    lists.promised.Remove(id);
  }
  Reindex(node);
}

void State::CountGroup(PodId id, int sign) {
  const PodState& pod = pods[id];
  if (pod.group == kNone) return;
  ++groups[pod.group].change;
  lists.waiting.Touch(pod.group);
  SetState& set = groups[pod.group].sets[pod.set];
  switch (pod.phase) {
    case PodPhase::kBound:
    case PodPhase::kRunning:
      set.holding += sign;
      break;
    case PodPhase::kReleasing:
      if (pod.node == kNone) break;
      set.releasing += sign;
      set.moving += sign * (pod.promise != kNone);
      break;
    case PodPhase::kSucceeded:
      set.succeeded += sign;
      break;
    case PodPhase::kFailed:
      break;
    case PodPhase::kPending:
      if (pod.promise != kNone) {
        set.promised += sign;
      } else if (pod.gated) {
        set.gated += sign;
      } else if (pod.blocked) {
        set.blocked += sign;
      } else {
        set.pending += sign;
        lists.startable[pod.group] += sign;
      }
      break;
  }
  if (sign > 0) UpdateBelow(pod.group);
}

UserUse* State::UseToCount(const GroupState& group) {
  QueueState& queue = queues[group.queue];
  if (!queue.HasUserRules()) return nullptr;
  if (queue.users.size() < users.size()) queue.users.resize(users.size());
  return &queue.users[group.user];
}

void State::CountLeaving(PodId id, int sign) {
  const PodState& pod = pods[id];
  const QueueAmounts charge = ChargeOf(shapes[pod.shape], pod.node);
  if (UserUse* use = UseToCount(groups[pod.group])) AddAmounts(use->leaving, charge, sign);
  ForQueues(groups[pod.group].queue, [&](QueueState& queue) {
    QueueAmounts& leaving = queue.pools[nodes[pod.node].pool].leaving;
    AddAmounts(leaving, charge, sign);
  });
}

void State::CountQueue(PodId id, int sign) {
  PodState& pod = pods[id];
  if (pod.group == kNone) return;
  const GroupState& group = groups[pod.group];
  if (pod.phase == PodPhase::kReleasing && pod.node != kNone) CountLeaving(id, sign);
  const NodeId where = pod.Holds() ? pod.node : pod.promise;
  const bool asks = where == kNone && pod.phase == PodPhase::kPending && !pod.gated && !pod.blocked;
  if (where == kNone && !asks) return;
  if (sign > 0) {
    pod.charge = ChargeOf(shapes[pod.shape], where);
    pod.charge_pool = asks ? HomePool(group, pod.shape) : nodes[where].pool;
  }
  ForQueues(group.queue, [&](QueueState& queue) {
    QueuePool& own = queue.pools[pod.charge_pool];
    for (int r = 0; r < kQueueResources; ++r) {
      const int64_t amount = sign * pod.charge[r];
      if (asks) {
        own.pending[r] += amount;
        continue;
      }
      own.used[r] += amount;
      if (!group.preemptible) own.used_protected[r] += amount;
    }
    if (queue.one_share && !asks) SpreadShare(queue);
  });
  if (!asks) {
    if (UserUse* use = UseToCount(group)) AddAmounts(use->used, pod.charge, sign);
  }
  if (group.preemptible && pod.Holds()) CountHolder(pod.group, sign);
}

void State::CountHolder(GroupId id, int sign) {
  GroupState& group = groups[id];
  QueueState& queue = queues[group.queue];
  auto it = queue.holders_by_priority.try_emplace(group.priority, 0).first;
  if ((it->second += sign) == 0) queue.holders_by_priority.erase(it);
  group.held += sign;
  std::vector<GroupId>& holders = queue.holders;
  if (sign > 0 && group.held == 1) {
    group.holder_pos = static_cast<int32_t>(holders.size());
    holders.push_back(id);
  } else if (group.held == 0) {
    groups[holders.back()].holder_pos = group.holder_pos;
    holders[group.holder_pos] = holders.back();
    holders.pop_back();
    group.holder_pos = kNone;
  }
}

void State::CountTerms(PodId id, int sign) {
  if (terms.empty()) return;
  const PodState& pod = pods[id];
  const Shape& shape = shapes[pod.shape];
  if (pod.Placed()) {
    const NodeState& node = nodes[pod.node];
    terms.Count(pod.labels, shape, pod.node, node.version, node.info.labels, sign,
                pod.PresenceThere());
  }
  if (pod.promise != kNone) {
    const NodeState& node = nodes[pod.promise];
    terms.Count(pod.labels, shape, pod.promise, node.version, node.info.labels, sign,
                Presence::kFutureOnly);
  }
}

void State::Count(PodId pod, int sign) {
  CountNode(pod, sign);
  CountPromise(pod, sign);
  CountGroup(pod, sign);
  CountQueue(pod, sign);
  CountTerms(pod, sign);
}

void State::SetPlace(PodId id, PodPhase phase, NodeId node, const DeviceSet& devices) {
  PodState& pod = pods[id];
  const bool same_room = pod.Holds() && pod.node == node && pod.devices == devices &&
                         (phase == PodPhase::kBound || phase == PodPhase::kRunning);
  if (same_room) {  // bound and running weigh the same
    pod.phase = phase;
    return;
  }
  const bool stays_placed =
      pod.Placed() && pod.node == node && pod.devices == devices &&
      (phase == PodPhase::kBound || phase == PodPhase::kRunning || phase == PodPhase::kReleasing);
  if (stays_placed) return TurnPlaced(id, phase);
  const bool was_placed = pod.Placed();
  const bool was_releasing = pod.phase == PodPhase::kReleasing;
  const bool makes_room =
      was_placed &&
      (node != pod.node || (phase == PodPhase::kReleasing && !was_releasing) ||
       phase == PodPhase::kSucceeded || phase == PodPhase::kFailed || !(pod.devices == devices));
  Count(id, -1);
  pod.phase = phase;
  pod.node = node;
  pod.devices = devices;
  Count(id, +1);
  if (makes_room) ++versions.room;
}

void State::TurnPlaced(PodId id, PodPhase phase) {
  PodState& pod = pods[id];
  if (pod.phase == phase) return;
  const bool releasing = phase == PodPhase::kReleasing;
  CountGroup(id, -1);
  CountQueue(id, -1);
  CountTerms(id, -1);
  pod.phase = phase;
  CountReleasing(id, releasing ? +1 : -1);
  Reindex(nodes[pod.node]);
  CountGroup(id, +1);
  CountQueue(id, +1);
  CountTerms(id, +1);
  if (releasing) ++versions.room;
}

void State::SetPromise(PodId id, NodeId node, const DeviceSet& devices) {
  PodState& pod = pods[id];
  if (pod.promise == node && pod.promise_devices == devices) return;
  if (pod.promise != kNone) ++versions.room;
  Count(id, -1);
  pod.promise = node;
  pod.promise_devices = devices;
  Count(id, +1);
}

void State::SetHint(PodId id, NodeId node) {
  const NodeId old = pods[id].hint;
  if (old == node) return;
  pods[id].hint = node;
  if (pods[id].group != kNone) lists.waiting.Touch(pods[id].group);
  if (node != kNone) {
    lists.hinted.Add(id);
  } else {
    lists.hinted.Remove(id);
  }
  if (node != kNone) ++nodes[node].hints;
  if (old != kNone) {
    --nodes[old].hints;
    FreeNodeIfUnused(old);
  }
}

void State::UpdateBelow(GroupId id) {
  GroupState& group = groups[id];
  int present = 0;
  bool short_of = false;
  bool succeeded = false;
  for (const SetState& set : group.sets) {
    const int here = set.holding + set.releasing + set.promised;
    present += here;
    short_of |= here < set.min_member;
    succeeded |= set.succeeded > 0;
  }
  const bool surplus = group.live && group.preemptible &&
                       std::any_of(group.sets.begin(), group.sets.end(),
                                   [](const SetState& set) { return set.Surplus() > 0; });
  counts.surplus_groups += surplus - group.has_surplus;
  group.has_surplus = surplus;
  const bool below = group.live && present > 0 && short_of && !succeeded;
  if (below == group.below) return;
  group.below = below;
  if (below) {
    lists.below_minimum.insert(id);
  } else {
    lists.below_minimum.erase(id);
  }
}

void State::RankQueues() {
  if (!versions.queues_dirty) return;
  versions.queues_dirty = false;
  std::vector<QueueId> order(queues.size());
  for (size_t id = 0; id < order.size(); ++id) order[id] = static_cast<QueueId>(id);
  std::sort(order.begin(), order.end(), [this](QueueId a, QueueId b) {
    return std::tie(queues[a].info.creation, queues[a].name) <
           std::tie(queues[b].info.creation, queues[b].name);
  });
  for (size_t rank = 0; rank < order.size(); ++rank) {
    queues[order[rank]].rank = static_cast<int32_t>(rank);
  }
  counts.some_queue_keeps = std::any_of(queues.begin(), queues.end(), [](const QueueState& queue) {
    return std::any_of(queue.pools.begin(), queue.pools.end(),
                       [](const QueuePool& pool) { return pool.kept != QueueAmounts{}; });
  });
}

void State::Refresh() {
  RankQueues();
  RankNodes();
  SumPools();
}

void State::RankNodes() {
  if (!versions.ranks_dirty) return;
  versions.ranks_dirty = false;
  index.by_rank.clear();
  int gpus_max = 0;
  const int64_t smallest_before = smallest_gpu_mib;
  smallest_gpu_mib = 0;
  for (size_t id = 0; id < nodes.size(); ++id) {
    NodeState& node = nodes[id];
    node.slot = NodeSlot{};
    node.rank = kNone;
    if (!node.present) continue;
    index.by_rank.push_back(static_cast<NodeId>(id));
    gpus_max = std::max(gpus_max, node.gpu_count);
    const int64_t mib = node.info.gpu_memory_mib;
    if (node.gpu_count > 0 && mib > 0 && (smallest_gpu_mib == 0 || mib < smallest_gpu_mib)) {
      smallest_gpu_mib = mib;
    }
  }
  std::sort(index.by_rank.begin(), index.by_rank.end(),
            [this](NodeId a, NodeId b) { return nodes[a].info.name < nodes[b].info.name; });
  AssignPools(smallest_before != smallest_gpu_mib);
  pool_facts.open.clear();
  pool_facts.free_gpu_ppm.assign(pools.size(), 0);
  index.Reset(static_cast<int>(pools.size()), static_cast<int>(index.by_rank.size()), gpus_max);
  for (size_t rank = 0; rank < index.by_rank.size(); ++rank) {
    NodeState& node = nodes[index.by_rank[rank]];
    node.rank = static_cast<int>(rank);
    node.free_ppm = 0;
    Reindex(node);
  }
}

}  // namespace swell::sched
