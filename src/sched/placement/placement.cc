#include "sched/placement/placement.h"

#include <tuple>

namespace swell::sched {
namespace {

bool PortsClash(const std::vector<HostPort>& a, const std::vector<HostPort>& b) {
  auto any = [](const std::string& ip) { return ip.empty() || ip == "0.0.0.0"; };
  for (const HostPort& x : a) {
    for (const HostPort& y : b) {
      if (x.port == y.port && x.protocol == y.protocol &&
          (any(x.host_ip) || any(y.host_ip) || x.host_ip == y.host_ip)) {
        return true;
      }
    }
  }
  return false;
}

bool PortsFree(
    const State& state, const Shape& shape, PodId self, const NodeState& node, Tense tense) {
  if (shape.ports.empty() || node.port_pods == 0) return true;
  for (PodId other : node.pods) {
    const bool goes = state.pods[other].phase == PodPhase::kReleasing && tense == Tense::kFuture;
    if (other != self && !goes && PortsClash(shape.ports, state.ShapeOf(other).ports)) return false;
  }
  for (PodId other : node.promises) {
    if (other != self && PortsClash(shape.ports, state.ShapeOf(other).ports)) return false;
  }
  return true;
}

int32_t CountOf(const DomainCount& count, Tense tense) {
  return tense == Tense::kNow ? count.now : count.future;
}

int32_t DomainOf(State& state, TermId term, NodeId node) {
  const NodeState& n = state.nodes[node];
  return state.terms.Domain(term, node, n.version, n.info.labels);
}

bool AffinityHolds(
    State& state, const PodState& pod, const Shape& shape, NodeId node, Tense tense) {
  for (TermId id : shape.affinity) {
    const int32_t domain = DomainOf(state, id, node);
    if (domain == kNone) return false;
    const Term& term = state.terms.term(id);
    if (CountOf(term.matching[domain], tense) > 0) continue;
    // The first pod of a set that wants to be together may go anywhere.
    if (CountOf(term.matching_total, tense) > 0 || !state.terms.Matches(id, pod.labels)) {
      return false;
    }
  }
  return true;
}

bool AntiAffinityHolds(
    State& state, const PodState& pod, const Shape& shape, NodeId node, Tense tense) {
  // A promised pod counts now too: its place is as good as taken.
  auto present = [tense](const DomainCount& count) {
    return count.future > 0 || (tense == Tense::kNow && count.now > 0);
  };
  for (TermId id : shape.anti_affinity) {
    const int32_t domain = DomainOf(state, id, node);
    if (domain != kNone && present(state.terms.term(id).matching[domain])) return false;
  }
  for (TermId id : state.terms.labels(pod.labels).matching) {
    if (!present(state.terms.term(id).owners_total)) continue;
    const int32_t domain = DomainOf(state, id, node);
    if (domain != kNone && present(state.terms.term(id).owners[domain])) return false;
  }
  return true;
}

bool SpreadHolds(State& state,
                 const PodState& pod,
                 const Shape& shape,
                 NodeId node,
                 Tense tense,
                 const SpreadMinima& minima) {
  for (size_t i = 0; i < shape.spread.size(); ++i) {
    const SpreadTerm& spread = shape.spread[i];
    if (!spread.required) continue;
    const int32_t domain = DomainOf(state, spread.term, node);
    if (domain == kNone) return false;
    const int32_t here = CountOf(state.terms.term(spread.term).matching[domain], tense);
    const int32_t self = state.terms.Matches(spread.term, pod.labels) ? 1 : 0;
    if (here + self - minima.minimum[i] > spread.max_skew) return false;
  }
  return true;
}

bool DeviceTakes(const Device& device, int64_t ppm, Tense tense) {
  return device.FreeInFuture() >= ppm && (tense == Tense::kFuture || device.FreeNow() >= ppm);
}

// Whether a device that someone shares already has room.
bool TakesBeside(const State& state, const Shape& shape, const NodeState& node, Tense tense) {
  const int64_t ppm = state.DevicePpm(shape, node);
  for (int i = 0; i < node.gpu_count; ++i) {
    if (!node.devices[i].IdleNow() && DeviceTakes(node.devices[i], ppm, tense)) return true;
  }
  return false;
}

// Liking that depends on where other pods are.
int64_t PodLiking(State& state, const Shape& shape, NodeId node, Tense tense) {
  int64_t liking = 0;
  for (const WeightedTerm& t : shape.preferred_terms) {
    const int32_t domain = DomainOf(state, t.term, node);
    if (domain == kNone) continue;
    liking += int64_t{t.weight} * CountOf(state.terms.term(t.term).matching[domain], tense);
  }
  for (const SpreadTerm& t : shape.spread) {
    if (t.required) continue;
    const int32_t domain = DomainOf(state, t.term, node);
    if (domain == kNone) continue;
    liking -= 100 * int64_t{CountOf(state.terms.term(t.term).matching[domain], tense)};
  }
  return liking;
}

constexpr size_t kFewNodes = 64;

// Lower is better.
using Badness = std::tuple<int64_t, int, int64_t, int64_t, int>;

Badness BadnessOf(State& state, const Shape& shape, NodeId id, int32_t liking, Tense tense) {
  const NodeState& node = state.nodes[id];
  const PoolInfo& pool = state.pools[node.pool];
  int64_t first = 0;
  int64_t second = 0;
  const int idle = tense == Tense::kNow ? node.idle_now : node.idle_future;
  if (shape.UsesGpu()) {
    if (shape.Shares() && pool.gpu == PlacementStrategy::kPack) {
      first = TakesBeside(state, shape, node, tense) ? 0 : 1;
    }
    second = pool.gpu == PlacementStrategy::kPack ? idle : -idle;
  } else {
    const bool slices =
        std::any_of(shape.extended.begin(), shape.extended.end(),
                    [&](const auto& wanted) { return state.resource_gpus[wanted.first] > 0; });
    first = slices ? 0 : node.has_gpus;
    const PlacementStrategy placement = slices ? pool.gpu : pool.cpu;
    second = placement == PlacementStrategy::kPack ? node.slot.cpu : -node.slot.cpu;
  }
  return {-(liking + PodLiking(state, shape, id, tense)), node.pool, first, second, node.rank};
}

// The nodes that lack room for the shape or do not suit it, as far as that was seen in this cycle
// and they did not change since: nobody of that shape need look at them again.
RankBitmap& MisfitsOf(State& state, ShapeId shape, Tense tense) {
  Shape::Misfits& misfits = state.shapes[shape].misfits[tense == Tense::kNow ? 0 : 1];
  const size_t changes = state.cycle.touched.size();
  const size_t nodes = state.index.by_rank.size();
  if (misfits.cycle != state.cycle.number || changes - misfits.seen > nodes) {
    misfits.cycle = state.cycle.number;
    misfits.ranks.Reset(static_cast<int>(nodes));
    misfits.seen = changes;
  }
  for (; misfits.seen < changes; ++misfits.seen) {
    misfits.ranks.Remove(state.cycle.touched[misfits.seen]);
  }
  return misfits.ranks;
}

Spot ScanForSpot(
    State& state, PodId pod, Tense tense, const NodeFilter* filter, const SpreadMinima& minima) {
  const ShapeId shape_id = state.pods[pod].shape;
  NodeId best = kNone;
  Badness least;
  const bool listed = filter != nullptr && !filter->listed.empty();
  for (NodeId id : listed ? filter->listed : state.index.by_rank) {
    if (filter != nullptr && !(*filter)[id]) continue;
    if (!FitsRoom(state, state.shapes[shape_id], state.nodes[id], tense)) continue;
    if (WhyNot(state, pod, id, tense, minima) != Lack::kNothing) continue;
    const int32_t liking = state.VerdictOf(shape_id, id).liking;
    const Badness badness = BadnessOf(state, state.shapes[shape_id], id, liking, tense);
    if (best == kNone || badness < least) {
      best = id;
      least = badness;
    }
  }
  if (best == kNone) return {};
  return {best, ChooseDevices(state, state.shapes[shape_id], state.nodes[best], tense)};
}

NodeId FirstIn(State& state,
               PodId pod,
               const RankBitmap& bucket,
               Tense tense,
               const NodeFilter* filter,
               const SpreadMinima& minima) {
  RankBitmap& misfits = MisfitsOf(state, state.pods[pod].shape, tense);
  for (int rank = bucket.NextBut(misfits, 0); rank >= 0; rank = bucket.NextBut(misfits, rank + 1)) {
    const NodeId id = state.index.by_rank[rank];
    if (filter != nullptr && !(*filter)[id]) continue;
    const Lack lack = WhyNot(state, pod, id, tense, minima);
    if (lack == Lack::kNothing) return id;
    if (lack == Lack::kCore || lack == Lack::kUnfit) misfits.Add(rank);
  }
  return kNone;
}

NodeId FirstInBuckets(State& state,
                      PodId pod,
                      const std::vector<RankBitmap>& buckets,
                      int from,
                      PlacementStrategy placement,
                      Tense tense,
                      const NodeFilter* filter,
                      const SpreadMinima& minima) {
  const int last = static_cast<int>(buckets.size()) - 1;
  for (int step = 0; step <= last - from; ++step) {
    const int b = placement == PlacementStrategy::kPack ? from + step : last - step;
    if (buckets[b].empty()) continue;
    const NodeId id = FirstIn(state, pod, buckets[b], tense, filter, minima);
    if (id != kNone) return id;
  }
  return kNone;
}

// Packed, a pod that shares a GPU goes beside others first, on an idle one only where it must.
NodeId FirstSharing(State& state,
                    PodId pod,
                    int p,
                    Tense tense,
                    const NodeFilter* filter,
                    const SpreadMinima& minima) {
  const NodeIndex::Pool& pool = state.index.pools()[p];
  const PlacementStrategy placement = state.pools[p].gpu;
  for (const RankBitmap& bucket : pool.by_shared_gpus) {
    if (placement == PlacementStrategy::kSpread) break;
    for (int rank = bucket.Next(0); rank >= 0; rank = bucket.Next(rank + 1)) {
      const NodeId id = state.index.by_rank[rank];
      if (filter != nullptr && !(*filter)[id]) continue;
      if (TakesBeside(state, state.ShapeOf(pod), state.nodes[id], tense) &&
          WhyNot(state, pod, id, tense, minima) == Lack::kNothing) {
        return id;
      }
    }
  }
  const int from = placement == PlacementStrategy::kSpread ? 0 : state.ShapeOf(pod).share_devices;
  return FirstInBuckets(state, pod, pool.by_idle_gpus, from, placement, tense, filter, minima);
}

// Without preferences the first fitting node of the first bucket is the best one.
Spot LookUpSpot(
    State& state, PodId pod, Tense tense, const NodeFilter* filter, const SpreadMinima& minima) {
  const Shape& shape = state.ShapeOf(pod);
  NodeId best = kNone;
  for (size_t p = 0; p < state.pools.size() && best == kNone; ++p) {
    if (filter != nullptr && filter->pool != kNone && filter->pool != static_cast<int>(p)) continue;
    const NodeIndex::Pool& pool = state.index.pools()[p];
    if (shape.core[kGpu] > 0) {
      if (shape.core[kGpu] > kDevicesMax) return {};
      const auto& buckets = tense == Tense::kNow ? pool.by_idle_gpus : pool.by_future_gpus;
      best = FirstInBuckets(state, pod, buckets, static_cast<int>(shape.core[kGpu]),
                            state.pools[p].gpu, tense, filter, minima);
    } else if (shape.Shares()) {
      best = FirstSharing(state, pod, static_cast<int>(p), tense, filter, minima);
    } else {
      for (int gpus = 0; gpus < 2 && best == kNone; ++gpus) {
        best = FirstInBuckets(state, pod, pool.by_free_cpu[gpus], 0, state.pools[p].cpu, tense,
                              filter, minima);
      }
    }
  }
  if (best == kNone) return {};
  return {best, ChooseDevices(state, state.ShapeOf(pod), state.nodes[best], tense)};
}

// The nodes with all the labels that required constraints name, as Kubernetes counts them: one that
// cannot take a pod just now is among them.
std::vector<NodeId> NodesToSpreadOver(State& state, const std::vector<SpreadTerm>& all) {
  std::vector<NodeId> nodes;
  for (NodeId node : state.index.by_rank) {
    const bool labelled = std::all_of(all.begin(), all.end(), [&](const SpreadTerm& each) {
      return !each.required || DomainOf(state, each.term, node) != kNone;
    });
    if (labelled) nodes.push_back(node);
  }
  return nodes;
}

// The fewest matching pods in any domain of the constraint, which may leave out some of the nodes.
int32_t LeastOf(State& state,
                ShapeId shape,
                const std::vector<NodeId>& nodes,
                const SpreadTerm& spread,
                Tense tense) {
  int32_t least = INT32_MAX;
  int32_t domains = 0;
  std::vector<bool> seen;
  for (NodeId node : nodes) {
    const Shape::Verdict& verdict = state.VerdictOf(shape, node);
    if (spread.honors_affinity && !verdict.selected) continue;
    if (spread.honors_taints && !verdict.tolerated) continue;
    const int32_t domain = DomainOf(state, spread.term, node);
    const std::vector<DomainCount>& matching = state.terms.term(spread.term).matching;
    seen.resize(matching.size());
    domains += !seen[domain];
    seen[domain] = true;
    least = std::min(least, CountOf(matching[domain], tense));
  }
  return domains == 0 || spread.min_domains > domains ? 0 : least;
}

}  // namespace

SpreadMinima ComputeSpreadMinima(State& state, ShapeId shape_id, Tense tense) {
  SpreadMinima minima;
  const std::vector<SpreadTerm> spread = state.shapes[shape_id].spread;
  const bool any = std::any_of(spread.begin(), spread.end(),
                               [](const SpreadTerm& each) { return each.required; });
  const std::vector<NodeId> nodes = any ? NodesToSpreadOver(state, spread) : std::vector<NodeId>();
  for (const SpreadTerm& s : spread) {
    minima.minimum.push_back(s.required ? LeastOf(state, shape_id, nodes, s, tense) : 0);
  }
  return minima;
}

bool IsFree(const Device& device, Tense tense) {
  return tense == Tense::kNow ? device.IdleNow() : device.IdleInFuture();
}

void TakeCounters(const DeviceCounters& counters,
                  const Shape& shape,
                  const DeviceSet& devices,
                  int sign,
                  std::vector<int64_t>& left) {
  auto take = [&](const CounterUses& uses) {
    for (const auto& [counter, amount] : uses) {
      if (counters.own[counter] == 0) left[counter] -= sign * amount;
    }
  };
  devices.ForEach([&](int device) {
    const bool shared = counters.shared.Has(device);
    if (shared && shape.by_kind) {
      for (const auto& [resource, amount] : shape.extended) {
        const DeviceUses* kind = counters.KindUses(resource);
        const auto uses = kind != nullptr ? kind->find(device) : DeviceUses::const_iterator();
        if (kind != nullptr && uses != kind->end()) return take(uses->second);
      }
    }
    // It is not known which part of a shared device it has, so nobody else gets the rest.
    const auto whole = counters.of_device.find(device);
    if (whole != counters.of_device.end()) take(whole->second);
  });
}

std::vector<int64_t> CountersLeft(const State& state, const NodeState& node, Tense tense) {
  const DeviceCounters& counters = *node.counters;
  std::vector<int64_t> now = counters.capacity;
  std::vector<int64_t> later = counters.capacity;
  for (const PodId id : node.pods) {
    const PodState& pod = state.pods[id];
    if (pod.devices.Empty()) continue;
    const Shape& shape = state.ShapeOf(id);
    TakeCounters(counters, shape, pod.devices, +1, now);
    if (pod.phase != PodPhase::kReleasing) {
      TakeCounters(counters, shape, pod.devices, +1, later);
    }
  }
  for (const PodId id : node.promises) {
    TakeCounters(counters, state.ShapeOf(id), state.pods[id].promise_devices, +1, later);
  }
  for (size_t i = 0; tense == Tense::kNow && i < later.size(); ++i) {
    later[i] = std::min(later[i], now[i]);
  }
  return later;
}

bool ShareOutKinds(const State& state,
                   const Shape& shape,
                   const NodeState& node,
                   Tense tense,
                   std::vector<DeviceSet>* out) {
  std::vector<DeviceWants> wants;
  DeviceSet free;
  DeviceSet first;
  const DeviceCounters* counters = node.counters.get();
  for (const auto& [resource, amount] : shape.extended) {
    if (state.resource_kinds[resource] == 0) continue;
    const DeviceSet* devices = node.KindOf(resource);
    if (devices == nullptr) return false;
    devices->ForEach([&](int i) {
      if (counters != nullptr && counters->shared.Has(i)) return free.Add(i);
      if (!IsFree(node.devices[i], tense)) return;
      free.Add(i);
      // A promise waits for terminating pods rather than holding idle devices back.
      if (!node.devices[i].IdleNow()) first.Add(i);
    });
    wants.push_back(
        {*devices, amount, counters != nullptr ? counters->KindUses(resource) : nullptr});
  }
  if (counters == nullptr) return ShareOut(wants, free, first, out);
  return ShareOut(wants, free, first, *counters, CountersLeft(state, node, tense), out);
}

bool FitsRoom(const State& state, const Shape& shape, const NodeState& node, Tense tense) {
  for (int r = 0; r < kCoreCount; ++r) {
    const int64_t wanted = shape.core[r];
    if (wanted == 0) continue;
    const int64_t room = node.allocatable[r] - node.used[r];
    if (tense == Tense::kNow && wanted > room) return false;
    if (wanted > room + node.releasing[r] - node.promised[r]) return false;
  }
  auto at = [](const std::vector<int64_t>& amounts, int r) {
    return static_cast<size_t>(r) < amounts.size() ? amounts[r] : 0;
  };
  for (const auto& [r, wanted] : shape.extended) {
    const int64_t room = at(node.ext_allocatable, r) - at(node.ext_used, r);
    if (tense == Tense::kNow && wanted > room) return false;
    if (wanted > room + at(node.ext_releasing, r) - at(node.ext_promised, r)) return false;
  }
  if (shape.by_kind && !ShareOutKinds(state, shape, node, tense, nullptr)) return false;
  if (shape.core[kGpu] > 0) {
    return shape.core[kGpu] <= (tense == Tense::kNow ? node.idle_now : node.idle_future);
  }
  if (shape.Shares()) {
    const int64_t ppm = state.DevicePpm(shape, node);
    int fitting = 0;
    for (int i = 0; i < node.gpu_count; ++i) fitting += DeviceTakes(node.devices[i], ppm, tense);
    return fitting >= shape.share_devices;
  }
  return true;
}

Lack WhyNot(State& state, PodId pod, NodeId node, Tense tense, const SpreadMinima& minima) {
  const Shape& shape = state.shapes[state.pods[pod].shape];
  if (!FitsRoom(state, shape, state.nodes[node], tense)) return Lack::kCore;
  return WhyNotBesidesRoom(state, pod, node, tense, minima);
}

Lack WhyNotBesidesRoom(
    State& state, PodId id, NodeId node_id, Tense tense, const SpreadMinima& minima) {
  const PodState& pod = state.pods[id];
  const NodeState& node = state.nodes[node_id];
  if (state.VerdictOf(pod.shape, node_id).unfit != Unfit::kNone) return Lack::kUnfit;
  if (node.held_for != kNone && !MayUseHeld(state, pod, node)) return Lack::kHeld;
  const Shape& shape = state.shapes[pod.shape];
  if (!PortsFree(state, shape, id, node, tense)) return Lack::kPorts;
  if (state.terms.empty()) return Lack::kNothing;
  if (!AffinityHolds(state, pod, shape, node_id, tense)) return Lack::kAffinity;
  if (!AntiAffinityHolds(state, pod, shape, node_id, tense)) return Lack::kAntiAffinity;
  if (!SpreadHolds(state, pod, shape, node_id, tense, minima)) return Lack::kSpread;
  return Lack::kNothing;
}

bool Fits(State& state, PodId pod, NodeId node, Tense tense) {
  const SpreadMinima minima = ComputeSpreadMinima(state, state.pods[pod].shape, tense);
  return WhyNot(state, pod, node, tense, minima) == Lack::kNothing;
}

DeviceSet ChooseDevices(const State& state,
                        const Shape& shape,
                        const NodeState& node,
                        Tense tense) {
  DeviceSet set;
  std::vector<DeviceSet> of_kinds;
  if (shape.by_kind && ShareOutKinds(state, shape, node, tense, &of_kinds)) {
    for (const DeviceSet& kind : of_kinds) kind.ForEach([&set](int i) { set.Add(i); });
  }
  if (shape.core[kGpu] > 0) {
    int64_t wanted = shape.core[kGpu] - shape.gpus_by_kind;
    // A promise waits for terminating pods rather than holding idle devices back.
    if (tense == Tense::kFuture) {
      for (int i = 0; i < node.gpu_count && wanted > 0; ++i) {
        if (!node.devices[i].IdleInFuture() || node.devices[i].IdleNow() || set.Has(i)) continue;
        set.Add(i);
        --wanted;
      }
    }
    for (int i = 0; i < node.gpu_count && wanted > 0; ++i) {
      if (!node.devices[i].IdleNow() || set.Has(i)) continue;
      set.Add(i);
      --wanted;
    }
    return set;
  }
  const int64_t ppm = state.DevicePpm(shape, node);
  const bool pack = state.pools[node.pool].shared_gpu == PlacementStrategy::kPack;
  for (int n = 0; n < shape.share_devices; ++n) {
    int best = kNone;
    for (int i = 0; i < node.gpu_count; ++i) {
      if (set.Has(i) || !DeviceTakes(node.devices[i], ppm, tense)) continue;
      const int64_t free = node.devices[i].FreeInFuture();
      const int64_t best_free = best == kNone ? 0 : node.devices[best].FreeInFuture();
      if (best == kNone || (pack ? free < best_free : free > best_free)) best = i;
    }
    if (best == kNone) break;
    set.Add(best);
  }
  return set;
}

NodeId FirstFitting(
    State& state, PodId pod, const RankBitmap& nodes, Tense tense, const NodeFilter* filter) {
  return FirstIn(state, pod, nodes, tense, filter, {});
}

Spot FindSpot(State& state, PodId pod, Tense tense, const NodeFilter* filter) {
  const ShapeId shape_id = state.pods[pod].shape;
  const SpreadMinima minima = ComputeSpreadMinima(state, shape_id, tense);
  // Promised room is kept where it was promised, or promises would wander.
  const NodeId hint = state.pods[pod].hint;
  if (hint != kNone && state.nodes[hint].present && (filter == nullptr || (*filter)[hint]) &&
      WhyNot(state, pod, hint, tense, minima) == Lack::kNothing) {
    return {hint, ChooseDevices(state, state.shapes[shape_id], state.nodes[hint], tense)};
  }
  const Shape& shape = state.shapes[shape_id];
  const bool plain =
      shape.extended.empty() && !shape.HasPreferences() && state.counts.soft_taints == 0;
  // Looking at each of a few nodes is faster than searching the index.
  const bool few =
      filter != nullptr && !filter->listed.empty() && filter->listed.size() <= kFewNodes;
  if (plain && !few && (tense == Tense::kNow || shape.core[kGpu] > 0)) {
    return LookUpSpot(state, pod, tense, filter, minima);
  }
  return ScanForSpot(state, pod, tense, filter, minima);
}

}  // namespace swell::sched
