// State's records: finding, making and freeing them, and interning what pods say.
#include <cmath>

#include "base/check.h"
#include "sched/state/state.h"
#include "sched/state/unhealthy.h"

namespace swell::sched {
namespace {

int32_t Find(const RecordIds::Map& map, std::string_view key) {
  auto it = map.find(key);
  return it == map.end() ? kNone : it->second;
}

std::string_view NamespaceOf(std::string_view key) { return key.substr(0, key.find('/')); }

// "nvidia.com/mig-3g.20gb" → 3.
int64_t MigGpus(std::string_view resource) {
  constexpr std::string_view kPrefix = "nvidia.com/mig-";
  if (resource.substr(0, kPrefix.size()) != kPrefix) return 0;
  resource.remove_prefix(kPrefix.size());
  return ParseInt(resource.substr(0, resource.find('g'))).value_or(0);
}

}  // namespace

NodeId State::FindNode(std::string_view name) const { return Find(ids.nodes, name); }
PodId State::FindPod(std::string_view key) const { return Find(ids.pods, key); }
GroupId State::FindGroup(std::string_view key) const { return Find(ids.groups, key); }

NodeId State::EnsureNode(std::string_view name) {
  NodeId id = FindNode(name);
  if (id != kNone) return id;
  if (ids.free_nodes.empty()) {
    id = static_cast<NodeId>(nodes.size());
    nodes.emplace_back();
  } else {
    id = ids.free_nodes.back();
    ids.free_nodes.pop_back();
  }
  nodes[id].info.name = name;
  nodes[id].version = ++versions.nodes;
  nodes[id].pool = static_cast<int>(pools.size()) - 1;
  ids.nodes.emplace(std::string(name), id);
  return id;
}

void State::FreeNodeIfUnused(NodeId id) {
  NodeState& node = nodes[id];
  if (node.present || !node.pods.empty() || !node.promises.empty() || node.hints > 0) return;
  ids.nodes.erase(ids.nodes.find(node.info.name));
  node = NodeState{};
  ids.free_nodes.push_back(id);
}

GroupId State::EnsureGroup(std::string_view key) {
  GroupId id = FindGroup(key);
  if (id != kNone) return id;
  if (ids.free_groups.empty()) {
    id = static_cast<GroupId>(groups.size());
    groups.emplace_back();
    lists.startable.push_back(0);
  } else {
    id = ids.free_groups.back();
    ids.free_groups.pop_back();
  }
  lists.waiting.TouchRank(id);  // the record may still be listed under its former owner
  GroupState& group = groups[id];
  group.key = key;
  group.live = true;
  group.sets.resize(1);
  ids.groups.emplace(std::string(key), id);
  return id;
}

void State::FreeGroupIfUnused(GroupId id) {
  GroupState& group = groups[id];
  if (!group.live || group.info || !group.members.empty()) return;
  ids.groups.erase(ids.groups.find(group.key));
  lists.below_minimum.erase(id);
  lists.said_stale.erase(id);
  lists.curved.erase(id);
  counts.surplus_groups -= group.has_surplus;
  group = GroupState{};
  ids.free_groups.push_back(id);
}

QueueId State::EnsureQueue(std::string_view name) {
  if (name.empty()) return 0;
  QueueId id = Find(ids.queues, name);
  if (id != kNone) return id;
  id = static_cast<QueueId>(queues.size());
  queues.emplace_back();
  queues[id].name = name;
  versions.queues_dirty = true;
  ids.queues.emplace(std::string(name), id);
  ReadQueueLimits(id);
  return id;
}

UserId State::EnsureUser(std::string_view name) {
  if (name.empty()) return 0;
  UserId id = Find(ids.users, name);
  if (id != kNone) return id;
  id = static_cast<UserId>(users.size());
  users.emplace_back(name);
  ids.users.emplace(std::string(name), id);
  return id;
}

int State::EnsureResource(std::string_view name) {
  int id = Find(resource_ids, name);
  if (id != kNone) return id;
  id = static_cast<int>(resource_names.size());
  resource_names.emplace_back(name);
  resource_gpus.push_back(MigGpus(name));
  resource_kinds.push_back(IsDeviceKind(name) ? 1 : 0);
  resource_part_ppm.push_back(GpuPartPpm(name));
  resource_ids.emplace(std::string(name), id);
  return id;
}

PodId State::NewPod(std::string_view key) {
  PodId id;
  if (ids.free_pods.empty()) {
    id = static_cast<PodId>(pods.size());
    pods.emplace_back();
  } else {
    id = ids.free_pods.back();
    ids.free_pods.pop_back();
  }
  pods[id].key = key;
  ids.pods.emplace(std::string(key), id);
  return id;
}

// The pod's requests, by the state's numbers of resources.
Shape State::ShapeOfRequests(const PodInfo& pod) {
  Shape shape;
  auto clamp = [](int64_t amount) { return std::max<int64_t>(0, amount); };
  shape.core = {clamp(pod.requests.cpu_milli), clamp(pod.requests.memory_bytes), 1,
                clamp(pod.requests.ephemeral_bytes), 0};
  for (const auto& [name, amount] : pod.requests.extended) {
    if (amount <= 0) continue;
    if (name == kGpuResource) {
      shape.core[kGpu] = amount;
    } else {
      shape.extended.emplace_back(EnsureResource(name), amount);
      shape.by_kind = shape.by_kind || IsDeviceKind(name);
      if (IsGpuKind(name)) shape.gpus_by_kind += amount;
    }
  }
  std::sort(shape.extended.begin(), shape.extended.end());
  if (shape.core[kGpu] == 0 && (pod.gpu_fraction > 0 || pod.gpu_memory_mib > 0)) {
    shape.share_devices = std::clamp(pod.gpu_fraction_devices, 1, kDevicesMax);
    shape.share_mib = clamp(pod.gpu_memory_mib);
    if (shape.share_mib == 0) {
      const double ppm = std::round(std::min(pod.gpu_fraction, 1.0) * kPpm);
      shape.share_ppm = std::max(kSharePpmMin, static_cast<int64_t>(ppm));
    }
  }
  return shape;
}

ShapeId State::AcquireShape(const PodInfo& pod) {
  Shape shape = ShapeOfRequests(pod);
  shape.node_selector = pod.node_selector;
  shape.required = pod.required_node_affinity;
  shape.preferred = pod.preferred_node_affinity;
  shape.volumes = pod.volume_affinity;
  shape.tolerations = pod.tolerations;
  shape.ports = pod.host_ports;

  std::vector<TermId> acquired;
  std::vector<TermId> fresh;
  const std::string own(NamespaceOf(pod.key));
  auto term = [&](const PodAffinityTerm& t) {
    const std::vector<std::string> names =
        t.namespaces.empty() ? std::vector<std::string>{own} : t.namespaces;
    bool created = false;
    const TermId id =
        terms.AcquireTerm(t.selector, names, t.all_namespaces, t.topology_key, &created);
    acquired.push_back(id);
    if (created) fresh.push_back(id);
    return id;
  };
  for (const PodAffinityTerm& t : pod.required_affinity) shape.affinity.push_back(term(t));
  for (const PodAffinityTerm& t : pod.required_anti_affinity) {
    shape.anti_affinity.push_back(term(t));
  }
  for (const PodAffinityTerm& t : pod.preferred_affinity) {
    shape.preferred_terms.push_back({term(t), std::clamp(t.weight, 1, 100)});
  }
  for (const PodAffinityTerm& t : pod.preferred_anti_affinity) {
    shape.preferred_terms.push_back({term(t), -std::clamp(t.weight, 1, 100)});
  }
  for (const SpreadConstraint& c : pod.spread) {
    PodAffinityTerm t;
    t.selector = c.selector;
    t.topology_key = c.topology_key;
    shape.spread.push_back({term(t), std::max(1, c.max_skew), c.required, c.min_domains,
                            c.honors_affinity, c.honors_taints});
  }
  const ShapeId id = shapes.Acquire(std::move(shape));
  if (shapes[id].refs > 1) {  // it already holds its terms
    for (TermId t : acquired) terms.ReleaseTerm(t);
  }
  for (TermId t : fresh) CountTerm(t);
  if (!fresh.empty()) lists.waiting.TouchAll();  // it may tell pods of one line apart
  return id;
}

// Counts the pods that were there before the term.
void State::CountTerm(TermId t) {
  for (const PodState& placed : pods) {
    if (placed.labels == kNone || !terms.Matches(t, placed.labels)) continue;
    if (placed.Placed()) {
      const NodeState& node = nodes[placed.node];
      terms.CountMatch(t, placed.node, node.version, node.info.labels, placed.PresenceThere());
    }
    if (placed.promise != kNone) {
      const NodeState& node = nodes[placed.promise];
      terms.CountMatch(t, placed.promise, node.version, node.info.labels, Presence::kFutureOnly);
    }
  }
}

void State::ReleaseShape(ShapeId id) {
  if (shapes[id].refs == 1) {
    const Shape& shape = shapes[id];
    std::vector<TermId> held = shape.affinity;
    held.insert(held.end(), shape.anti_affinity.begin(), shape.anti_affinity.end());
    for (const WeightedTerm& t : shape.preferred_terms) held.push_back(t.term);
    for (const SpreadTerm& t : shape.spread) held.push_back(t.term);
    for (TermId term : held) terms.ReleaseTerm(term);
  }
  shapes.Release(id);
}

void State::AddMember(PodId pod) {
  GroupState& group = groups[pods[pod].group];
  group.summary_hash = 0;  // the record may have been another's, who was told
  std::vector<PodId>& members = group.members;
  auto before = [this](PodId a, PodId b) { return MemberBefore(a, b); };
  members.insert(std::lower_bound(members.begin(), members.end(), pod, before), pod);
  group.checkpoint = std::max(group.checkpoint, pods[pod].checkpoint);
}

void State::RemoveMember(PodId pod) {
  GroupState& group = groups[pods[pod].group];
  std::erase(group.members, pod);
  if (pods[pod].checkpoint.unix_ns != 0) FindCheckpoint(group);
}

void State::SetCheckpoint(PodId id, WallTime checkpoint) {
  PodState& pod = pods[id];
  if (pod.checkpoint == checkpoint) return;
  pod.checkpoint = checkpoint;
  if (pod.group != kNone) FindCheckpoint(groups[pod.group]);
}

void State::FindCheckpoint(GroupState& group) const {
  group.checkpoint = {};
  for (PodId member : group.members) {
    group.checkpoint = std::max(group.checkpoint, pods[member].checkpoint);
  }
}

// One member may save for its whole gang, and only that one reports it.
WallTime State::SavedAt(const PodState& pod) const {
  WallTime saved = pod.checkpoint;
  if (saved.unix_ns == 0 && pod.group != kNone && groups[pod.group].unit == PreemptUnit::kGang) {
    saved = groups[pod.group].checkpoint;
  }
  return std::max(pod.start, saved);
}

int32_t State::ResolveSet(const GroupState& group, const std::string& pod_set) const {
  for (size_t i = 0; i < group.sets.size(); ++i) {
    if (group.sets[i].name == pod_set) return static_cast<int32_t>(i);
  }
  return 0;
}

void State::AssignImplicitDevices(NodeId node_id) {
  NodeState& node = nodes[node_id];
  if (node.implicit_pods == 0) return;
  const int count = node.gpu_count;
  std::vector<int64_t> used(count, 0);
  UnhealthyDevices(node.info).ForEach([&](int i) {
    if (i < count) used[i] = kPpm;
  });
  std::vector<PodId> unsaid;
  for (PodId id : node.pods) {
    if (pods[id].implicit_devices) {
      unsaid.push_back(id);
      continue;
    }
    const int64_t ppm = DevicePpm(shapes[pods[id].shape], node);
    pods[id].devices.ForEach([&](int i) {
      if (i < count) used[i] += ppm;
    });
  }
  std::sort(unsaid.begin(), unsaid.end(),
            [this](PodId a, PodId b) { return pods[a].key < pods[b].key; });
  for (PodId id : unsaid) {
    const Shape& shape = shapes[pods[id].shape];
    const int64_t ppm = DevicePpm(shape, node);
    int64_t wanted = shape.Shares() ? shape.share_devices : shape.core[kGpu];
    DeviceSet set;
    for (; wanted > 0; --wanted) {
      int best = kNone;  // the fullest that still has room
      for (int i = 0; i < count; ++i) {
        const bool room = !set.Has(i) && used[i] + ppm <= kPpm;
        if (room && (best == kNone || used[i] > used[best])) best = i;
      }
      if (best == kNone) break;
      set.Add(best);
      used[best] += ppm;
    }
    const PodState& pod = pods[id];
    if (!(pod.devices == set)) {
      pods[id].seen_devices = set;
      SetPlace(id, pod.phase, node_id, set);
    }
  }
}

}  // namespace swell::sched
