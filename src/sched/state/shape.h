// Shapes: what a pod asks of a node, shared by all pods that ask the same.
//
// Whether a node suits a shape apart from room (labels, taints, readiness) is decided once per
// version of the node and remembered here, so a cycle compares numbers only.
//
// - Threads: none.
// - Ownership: ShapeTable owns; ids are stable while a reference is held.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sched/state/intern_table.h"
#include "sched/state/rank_bitmap.h"
#include "sched/state/types.h"

namespace swell::sched {

using NodeId = int32_t;
using PodId = int32_t;
using GroupId = int32_t;
using QueueId = int32_t;
using UserId = int32_t;
using ShapeId = int32_t;
using TermId = int32_t;
using LabelSetId = int32_t;
inline constexpr int32_t kNone = -1;

enum CoreResource { kCpu, kMemory, kPods, kEphemeral, kGpu, kCoreCount };
using CoreAmounts = std::array<int64_t, kCoreCount>;
enum QueueResource { kQueueGpu, kQueueCpu, kQueueMemory, kQueueResources };
// GPUs in ppm, CPU in milli-CPU, memory in bytes.
using QueueAmounts = std::array<int64_t, kQueueResources>;
inline constexpr int8_t kUnknownSuit = -1;
inline constexpr int64_t kPpm = 1'000'000;  // one whole GPU
// What a pod has of a GPU at least. It sees the whole GPU, so next to nothing must not be free.
inline constexpr int64_t kSharePpmMin = kPpm / 100;

// Why a node does not suit a shape, room aside. Order: what is told first.
enum class Unfit : uint8_t {
  kNone,
  kNotReady,
  kUnschedulable,
  kTaint,
  kSelector,   // node selector or required affinity
  kVolume,     // a volume cannot be used there
  kSliced,     // shares a GPU, and those of the node are divided by MIG
  kGpuMemory,  // asks for GPU memory of a node that does not say how much it has
  kByKind,     // asks for GPUs of no kind, and the node's are given by kind
};

// Inter-pod terms by id (terms.h).
struct WeightedTerm {
  TermId term = kNone;
  int32_t weight = 0;
};
struct SpreadTerm {
  TermId term = kNone;
  int32_t max_skew = 1;
  bool required = true;
  int32_t min_domains = 1;
  bool honors_affinity = true;
  bool honors_taints = false;
};

struct Shape {
  std::string key;  // canonical text of everything below
  int32_t refs = 0;

  CoreAmounts core{};
  std::vector<std::pair<int, int64_t>> extended;  // (interned resource, amount > 0), sorted
  bool by_kind = false;      // some of these are kinds of devices (device_kinds.h)
  int64_t gpus_by_kind = 0;  // of core[kGpu]
  int64_t share_ppm = 0;     // sharing: of each device
  int64_t share_mib = 0;     // or by memory
  int share_devices = 0;     // > 0: the pod shares GPUs
  Labels node_selector;
  std::vector<NodeSelectorTerm> required;
  std::vector<PreferredNodeTerm> preferred;
  std::vector<std::vector<NodeSelectorTerm>> volumes;
  std::vector<Toleration> tolerations;
  std::vector<HostPort> ports;
  std::vector<TermId> affinity;
  std::vector<TermId> anti_affinity;
  std::vector<WeightedTerm> preferred_terms;  // anti-affinity with negative weight
  std::vector<SpreadTerm> spread;

  bool Shares() const { return share_devices > 0; }
  bool UsesGpu() const { return core[kGpu] > 0 || Shares(); }
  bool UsesDevices() const { return by_kind || UsesGpu(); }
  // Placing other pods can make room for it, so "does not fit" is not final within a cycle.
  bool DependsOnPods() const { return !affinity.empty() || !spread.empty(); }
  // Some suitable nodes are liked better than others.
  bool HasPreferences() const {
    return !preferred.empty() || !preferred_terms.empty() || !spread.empty();
  }

  // Decided once per node version; index NodeId.
  struct Verdict {
    uint32_t node_version = 0;  // 0: not decided
    Unfit unfit = Unfit::kNone;
    bool selected = false;   // by node selector and required affinity
    bool tolerated = false;  // all its taints
    int32_t liking = 0;      // preferred node affinity less untolerated PreferNoSchedule taints
  };
  std::vector<Verdict> verdicts;
  // Nodes by rank that were found not to suit or to lack room, by tense, and up to where in
  // CurrentCycle::touched that is true; of the cycle under way.
  struct Misfits {
    uint64_t cycle = 0;
    size_t seen = 0;
    RankBitmap ranks;
  };
  std::array<Misfits, 2> misfits;
  // Which pools have a node for it, by pool; as of that Versions::pools.
  uint32_t pools_epoch = 0;
  std::vector<int8_t> suits;
  // Room epochs at which no node had room, now and once terminating pods are gone; 0: unknown.
  uint64_t full_now_epoch = 0;
  uint64_t full_future_epoch = 0;
};

bool MatchesRequirement(const Labels& labels, const Requirement& requirement);
bool MatchesAll(const Labels& labels, const std::vector<Requirement>& requirements);
bool MatchesTerm(const NodeInfo& node, const NodeSelectorTerm& term);
bool Tolerates(const std::vector<Toleration>& tolerations, const Taint& taint);
// The first NoSchedule or NoExecute taint that is not tolerated, or null.
const Taint* UntoleratedTaint(const NodeInfo& node, const Shape& shape);
// Whether pods of the shape may run on the node, computed anew.
Shape::Verdict CheckNode(const NodeInfo& node, const Shape& shape);

class ShapeTable {
 public:
  // Returns the id of an equal shape, adding it if new, and takes a reference.
  ShapeId Acquire(Shape&& shape);
  void Release(ShapeId id) {
    shapes_.Release(id, [](Shape&) {});
  }
  Shape& operator[](ShapeId id) { return shapes_[id]; }
  const Shape& operator[](ShapeId id) const { return shapes_[id]; }
  size_t size() const { return shapes_.size(); }

 private:
  InternTable<Shape> shapes_;
};

// Canonical text of a shape's fields, for Shape::key.
std::string ShapeKey(const Shape& shape);

}  // namespace swell::sched
