#include "sched/actions/node_diagnosis.h"

#include <algorithm>

#include "base/random.h"
#include "base/strings.h"
#include "sched/placement/gang.h"
#include "sched/placement/topology.h"
#include "sched/state/exclusive_claims.h"
#include "sched/state/unhealthy.h"

namespace swell::sched {
namespace {

// Amounts by interned resource; those that the node has never heard of are 0.
int64_t At(const std::vector<int64_t>& amounts, int resource) {
  const auto at = static_cast<size_t>(resource);
  return at < amounts.size() ? amounts[at] : 0;
}

std::string_view CoreName(int resource) {
  constexpr std::string_view kNames[] = {"Insufficient cpu", "Insufficient memory", "Too many pods",
                                         "Insufficient ephemeral-storage",
                                         "Insufficient nvidia.com/gpu"};
  return kNames[resource];
}

std::string HolderName(const State& state, const NodeState& node) {
  const std::string& key = state.groups[node.held_for].key;
  return key.starts_with('/') ? key.substr(1) : key;
}

// Why the node takes no pod of the shape, whatever room it has; empty: it may.
std::string UnfitText(const NodeState& node, const Shape& shape, Unfit unfit) {
  switch (unfit) {
    case Unfit::kNone:
      return "";
    case Unfit::kNotReady:
      return "node(s) were not ready";
    case Unfit::kUnschedulable:
      return "node(s) were unschedulable";
    case Unfit::kTaint: {
      const Taint* taint = UntoleratedTaint(node.info, shape);
      if (taint->key == kUnhealthyTaint) return "node(s) were unhealthy (swell health lists them)";
      return StrCat("node(s) had taint {", taint->key, ": ", taint->value,
                    "}, that the pod didn't tolerate");
    }
    case Unfit::kSelector:
      return "node(s) didn't match Pod's node affinity/selector";
    case Unfit::kVolume:
      return "node(s) had volume node affinity conflict";
    case Unfit::kSliced:
      return "node(s) had GPUs divided by MIG, which are not shared otherwise";
    case Unfit::kGpuMemory:
      return "node(s) didn't say how much memory their GPUs have";
    case Unfit::kByKind:
      return "node(s) gave their GPUs to resource claims only";
  }
  return "";
}

// Whether another pod has, or was promised, a claim that the pod would use alone.
bool ClaimIsUsed(const State& state, PodId pod) {
  const std::vector<TermId>& apart = state.ShapeOf(pod).anti_affinity;
  return std::any_of(apart.begin(), apart.end(), [&state](TermId id) {
    const Term& term = state.terms.term(id);
    if (term.topology_key != kWholeCluster) return false;
    return term.matching_total.now > 0 || term.matching_total.future > 0;
  });
}

// What a node with room lacks; empty: nothing.
std::string LackText(const State& state, PodId pod, const NodeState& node, Lack lack) {
  switch (lack) {
    case Lack::kPorts:
      return "node(s) didn't have free ports for the requested pod ports";
    case Lack::kAffinity:
      return "node(s) didn't match pod affinity rules";
    case Lack::kAntiAffinity:
      if (ClaimIsUsed(state, pod)) {
        return "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod "
               "access mode";
      }
      return "node(s) didn't match pod anti-affinity rules";
    case Lack::kSpread:
      return "node(s) didn't match pod topology spread constraints";
    case Lack::kHeld:
      return StrCat("node(s) were held for ", HolderName(state, node), ", which has waited long");
    default:
      return "";
  }
}

}  // namespace

// Counts every missing resource, as kube-scheduler does.
void NodeDiagnoser::CountLacks(PodId pod,
                               NodeId node_id,
                               const SpreadMinima& minima,
                               NodeLacks& lacks) {
  const ShapeId shape_id = state_.pods[pod].shape;
  const NodeState& node = state_.nodes[node_id];
  const Shape& shape = state_.shapes[shape_id];
  const Unfit unfit = state_.VerdictOf(shape_id, node_id).unfit;
  std::string why = UnfitText(node, shape, unfit);
  if (why.empty() && !FitsRoom(state_, shape, node, Tense::kNow)) {
    CountRoomLacks(shape, node, lacks);
    return;
  }
  if (why.empty()) {
    why = LackText(state_, pod, node, WhyNot(state_, pod, node_id, Tense::kNow, minima));
  }
  if (!why.empty()) ++lacks.others[why];
}

void NodeDiagnoser::CountRoomLacks(const Shape& shape, const NodeState& node, NodeLacks& lacks) {
  bool told = false;
  for (int r = 0; r < kCoreCount; ++r) {
    const int64_t room = node.allocatable[r] - node.used[r];
    const int64_t later = room + node.releasing[r] - node.promised[r];
    const bool gpus_taken = r == kGpu && shape.core[r] > node.idle_now;
    if (r == kGpu && shape.gpus_by_kind == shape.core[r]) continue;  // told by kind
    if (shape.core[r] == 0 || (shape.core[r] <= std::min(room, later) && !gpus_taken)) continue;
    ++lacks.core[r];
    told = true;
  }
  for (const auto& [r, wanted] : shape.extended) {
    if (state_.resource_kinds[r] != 0) continue;
    const int64_t room = At(node.ext_allocatable, r) - At(node.ext_used, r);
    const int64_t later = room + At(node.ext_releasing, r) - At(node.ext_promised, r);
    if (wanted <= std::min(room, later)) continue;
    ++lacks.others[StrCat("Insufficient ", state_.resource_names[r])];
    told = true;
  }
  if (CountKindLacks(shape, node, lacks)) told = true;
  if (!told) ++lacks.core[kGpu];  // parts of devices
}

// Tells which kinds of devices the node has too few of; else that they are in each other's way.
bool NodeDiagnoser::CountKindLacks(const Shape& shape, const NodeState& node, NodeLacks& lacks) {
  if (!shape.by_kind || ShareOutKinds(state_, shape, node, Tense::kNow, nullptr)) return false;
  bool told = false;
  std::string_view any;
  for (const auto& [r, wanted] : shape.extended) {
    if (state_.resource_kinds[r] == 0) continue;
    any = state_.resource_names[r];
    if (FreeOfKind(state_, node, r) >= wanted) continue;
    ++lacks.others[StrCat("node(s) had fewer than ", wanted, " free ", any)];
    told = true;
  }
  if (!told) ++lacks.others[StrCat("node(s) had too few free ", any, " for all requests")];
  return true;
}

int64_t FreeOfKind(const State& state, const NodeState& node, int resource) {
  const DeviceSet* devices = node.KindOf(resource);
  if (devices == nullptr) return 0;
  int64_t free = 0;
  const DeviceCounters* counters = node.counters.get();
  if (counters == nullptr) {
    devices->ForEach([&](int i) { free += node.devices[i].IdleNow() ? 1 : 0; });
    return free;
  }
  const std::vector<int64_t> left = CountersLeft(state, node, Tense::kNow);
  const DeviceUses* uses = counters->KindUses(resource);
  devices->ForEach([&](int i) {
    if (!counters->shared.Has(i) && !node.devices[i].IdleNow()) return;
    free += CountersAllow(counters->UsesOf(i, uses), left) ? 1 : 0;
  });
  return free;
}

int64_t ExtendedOf(const NodeState& node, int resource) {
  return At(node.ext_allocatable, resource);
}

int64_t PlacesWhenEmpty(const Shape& shape, const NodeState& node) {
  int64_t places = INT32_MAX;
  for (int r = 0; r < kCoreCount; ++r) {
    if (shape.core[r] > 0) places = std::min(places, node.allocatable[r] / shape.core[r]);
  }
  if (shape.by_kind) return places;
  for (const auto& [r, wanted] : shape.extended) {
    places = std::min(places, ExtendedOf(node, r) / wanted);
  }
  return places;
}

int64_t PlacesOn(const State& state, const Shape& shape, const NodeState& node) {
  int64_t places = INT32_MAX;
  for (int r = 0; r < kCoreCount; ++r) {
    if (shape.core[r] == 0) continue;
    const int64_t room = r == kGpu ? node.idle_now : node.allocatable[r] - node.used[r];
    places = std::min(places, std::max<int64_t>(0, room) / shape.core[r]);
  }
  for (const auto& [r, wanted] : shape.extended) {
    if (shape.by_kind) break;  // devices, which FitsRoom shares out
    const int64_t room = ExtendedOf(node, r) - At(node.ext_used, r);
    places = std::min(places, std::max<int64_t>(0, room) / wanted);
  }
  if (places > 0 && !FitsRoom(state, shape, node, Tense::kNow)) return 0;
  return places;
}

void NodeDiagnoser::CountFree(const Shape& shape, const NodeState& node, Diagnosis& d) const {
  d.gpus_free += node.idle_now;
  d.cpu_free += std::max<int64_t>(0, node.allocatable[kCpu] - node.used[kCpu]);
  for (int i = 0; shape.Shares() && i < node.gpu_count; ++i) {
    const Device& device = node.devices[i];
    d.part_free = std::max(d.part_free, std::min(device.FreeNow(), device.FreeInFuture()));
  }
  if (shape.extended.empty()) return;
  if (shape.by_kind) {
    d.kind_free += FreeOfKind(state_, node, KindOf(state_, shape));
    return;
  }
  const int resource = shape.extended.front().first;
  const int64_t room = ExtendedOf(node, resource) - At(node.ext_used, resource);
  d.extended_free += std::max<int64_t>(0, room);
}

int KindOf(const State& state, const Shape& shape) {
  for (const auto& [resource, amount] : shape.extended) {
    if (state.resource_kinds[resource] != 0) return resource;
  }
  return kNone;
}

std::string LacksText(const NodeLacks& lacks) {
  std::vector<std::string> parts;
  for (int r = 0; r < kCoreCount; ++r) {
    if (lacks.core[r] > 0) parts.push_back(StrCat(lacks.core[r], " ", CoreName(r)));
  }
  for (const auto& [reason, count] : lacks.others) parts.push_back(StrCat(count, " ", reason));
  std::sort(parts.begin(), parts.end());
  return Join(parts, ", ");
}

// Whether limits and quotas let the group start in the pool, as far as they differ between pools.
bool NodeDiagnoser::FitsBoundsIn(GroupId id, int pool) {
  const GroupState& group = state_.groups[id];
  bool bounded = false;
  state_.ForQueues(group.queue, [&](const QueueState& queue) {
    for (int r = 0; r < kQueueResources; ++r) {
      bounded |= !queue.one_share && queue.pools[pool].limit[r] >= 0;
      bounded |= !queue.one_share && !group.preemptible && queue.pools[pool].quota[r] >= 0;
    }
  });
  if (!bounded) return true;
  const Needed needed = NeededPods(state_, id);
  std::vector<PodId> first = needed.met ? ElasticPods(state_, id) : needed.pods;
  if (needed.met && first.size() > 1) first.resize(1);
  return FitsQueues(state_, group, first, pool, Tense::kFuture);
}

OpenPools NodeDiagnoser::OpenTo(GroupId id) {
  const GroupState& group = state_.groups[id];
  const std::vector<int> candidates = state_.PoolsFor(id);
  if (std::find(candidates.begin(), candidates.end(), kNone) != candidates.end()) return {};
  const std::string closed =
      candidates.size() < state_.pool_facts.live.size()
          ? "node(s) were in other node pools than its pods"
          : StrCat("node(s) were in node pools closed to project ", group.queue_name);
  OpenPools pools;
  pools.why_closed.assign(state_.pools.size(), closed);
  for (const int pool : candidates) {
    bool open = true;
    state_.ForQueues(group.queue,
                     [&](const QueueState& queue) { open &= !queue.pools[pool].closed; });
    if (!open) continue;
    pools.why_closed[pool] = FitsBoundsIn(id, pool)
                                 ? ""
                                 : StrCat("node(s) were in node pools where project ",
                                          group.queue_name, " would exceed its limit or quota");
  }
  return pools;
}

const Diagnosis& NodeDiagnoser::Diagnose(PodId pod) {
  const ShapeId shape_id = state_.pods[pod].shape;
  const OpenPools pools = OpenTo(state_.pods[pod].group);
  auto [it, added] = known_.try_emplace({shape_id, state_.pods[pod].labels, pools});
  Diagnosis& d = it->second;
  if (!added) return d;
  const SpreadMinima minima = ComputeSpreadMinima(state_, shape_id, Tense::kNow);
  NodeLacks lacks;
  int available = 0;
  for (NodeId id : state_.index.by_rank) {
    if (!pools.Has(state_.nodes[id])) {
      ++lacks.others[pools.why_closed[state_.nodes[id].pool]];
      continue;
    }
    CountLacks(pod, id, minima, lacks);
    if (state_.VerdictOf(shape_id, id).unfit != Unfit::kNone) continue;
    d.suits_any = true;
    const Shape& shape = state_.shapes[shape_id];
    const NodeState& node = state_.nodes[id];
    const int64_t places = PlacesOn(state_, shape, node);
    d.places += places;
    available += WhyNot(state_, pod, id, Tense::kNow, minima) == Lack::kNothing;
    CountFree(shape, node, d);
    d.places_when_empty += PlacesWhenEmpty(shape, node);
    for (int r = 0; r < kCoreCount; ++r) {
      d.largest[r] = std::max(d.largest[r], node.allocatable[r]);
    }
    const int64_t cpu_lacks = shape.core[kCpu] - (node.allocatable[kCpu] - node.used[kCpu]);
    const int64_t gpu_lacks = shape.core[kGpu] - node.idle_now;
    const bool by_gpu = shape.core[kGpu] > 0 && gpu_lacks > 0;
    const int64_t lacks = by_gpu ? gpu_lacks : cpu_lacks;
    if (lacks <= 0) continue;
    // Lacking CPU only is nearer than lacking GPUs.
    const auto nearness = std::pair(by_gpu, lacks);
    const bool nearer =
        d.nearest == kNone || nearness < std::pair(d.nearest_by_gpu, d.nearest_lacks);
    if (nearer && WhyNotBesidesRoom(state_, pod, id, Tense::kNow, minima) == Lack::kNothing) {
      d.nearest = id;
      d.nearest_lacks = lacks;
      d.nearest_by_gpu = by_gpu;
    }
  }
  const std::string reasons = LacksText(lacks);
  const size_t total = state_.index.by_rank.size();
  d.nodes = StrCat(available, "/", total, " nodes are available");
  if (!reasons.empty()) d.nodes += ": " + reasons;
  d.nodes += '.';
  d.hash =
      StableHash(StrCat(d.nodes, ' ', d.gpus_free, ' ', d.cpu_free, ' ', d.part_free, ' ',
                        d.extended_free, ' ', d.kind_free, ' ', d.places, ' ', d.places_when_empty,
                        ' ', d.largest[kGpu], ' ', d.nearest, ' ', d.nearest_lacks));
  return d;
}

}  // namespace swell::sched
