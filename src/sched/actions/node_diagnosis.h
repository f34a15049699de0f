// NodeDiagnoser: why the nodes do not take a pod, counted over all nodes, for its waiting reason.
// - Threads: none; the scheduler's thread. Lives while a cycle explains.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "sched/placement/placement.h"
#include "sched/state/state.h"

namespace swell::sched {

// Where a group's work may run.
struct OpenPools {
  // By pool: why its nodes are closed to the group; an empty text: they are open. No texts: pools
  // do not matter.
  std::vector<std::string> why_closed;
  bool Has(const NodeState& node) const {
    return why_closed.empty() || why_closed[node.pool].empty();
  }
  auto operator<=>(const OpenPools&) const = default;
};

// What keeps the nodes from taking one shape, counted. Shared by all pods of the shape to which the
// same pools are open.
struct Diagnosis {
  uint64_t hash = 0;       // of everything below
  std::string nodes;       // "0/6 nodes are available: 3 Insufficient nvidia.com/gpu, ..."
  bool suits_any = false;  // a node lacks nothing for it but room
  int64_t gpus_free = 0;   // idle on suitable nodes
  int64_t cpu_free = 0;
  int64_t part_free = 0;      // of one GPU, in ppm: the most on any, for pods that share
  int64_t extended_free = 0;  // of the first extended resource it asks for
  int64_t kind_free = 0;      // of the first kind of devices it asks for
  int64_t places = 0;  // pods of this shape that would fit now, counting GPUs, CPU and memory
  int64_t places_when_empty = 0;  // and if the suitable nodes held nothing
  CoreAmounts largest{};          // of any suitable node
  NodeId nearest = kNone;         // suitable node that lacks room, and least of it
  int64_t nearest_lacks = 0;      // GPUs, or milli-CPU for pods without
  bool nearest_by_gpu = false;
};

// Reasons and on how many nodes; those of the core resources apart, they are the common ones.
struct NodeLacks {
  std::array<int, kCoreCount> core{};
  std::map<std::string, int> others;
};
// "3 Insufficient nvidia.com/gpu, 1 node(s) were not ready".
std::string LacksText(const NodeLacks& lacks);

class NodeDiagnoser {
 public:
  explicit NodeDiagnoser(State& state) : state_(state) {}
  OpenPools OpenTo(GroupId id);
  const Diagnosis& Diagnose(PodId pod);
  // Adds every reason why the node does not take the pod now.
  void CountLacks(PodId pod, NodeId node, const SpreadMinima& minima, NodeLacks& lacks);

 private:
  bool FitsBoundsIn(GroupId id, int pool);
  void CountRoomLacks(const Shape& shape, const NodeState& node, NodeLacks& lacks);
  bool CountKindLacks(const Shape& shape, const NodeState& node, NodeLacks& lacks);
  void CountFree(const Shape& shape, const NodeState& node, Diagnosis& d) const;

  State& state_;
  std::map<std::tuple<ShapeId, LabelSetId, OpenPools>, Diagnosis> known_;
};

// Pods of the shape for which the node has room now.
int64_t PlacesOn(const State& state, const Shape& shape, const NodeState& node);
// The first kind of devices that the shape asks for, and how many of them are available.
int KindOf(const State& state, const Shape& shape);
int64_t FreeOfKind(const State& state, const NodeState& node, int resource);
// What the node has in all of an extended resource.
int64_t ExtendedOf(const NodeState& node, int resource);
// Pods of the shape that the node takes when it holds nothing.
int64_t PlacesWhenEmpty(const Shape& shape, const NodeState& node);

}  // namespace swell::sched
