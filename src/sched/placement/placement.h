// Placement: whether a pod fits a node, and which of the nodes it fits it should get.
//
// Two tenses: kNow is room that is free and promised to nobody; kFuture is room once terminating
// pods are gone. Choice among fitting nodes, in order: what the pod prefers, the pool's name, nodes
// without GPUs for pods without, then packed (least room left) or spread, then the node's name.
//
// - Threads: none; pure functions over a State. They change only caches inside it.
#pragma once

#include <vector>

#include "sched/state/state.h"

namespace swell::sched {

enum class Tense { kNow, kFuture };

struct Spot {
  NodeId node = kNone;
  DeviceSet devices;
  explicit operator bool() const { return node != kNone; }
};

// What keeps a node from taking a pod, most lasting first.
enum class Lack {
  kNothing,
  kUnfit,  // see State::VerdictOf
  kCore,
  kExtended,
  kDevices,
  kPorts,
  kAffinity,
  kAntiAffinity,
  kSpread,
  kHeld,  // for a job that has waited long
};

// The fewest matching pods in any domain, per required spread constraint of a shape.
struct SpreadMinima {
  std::vector<int32_t> minimum;
};
SpreadMinima ComputeSpreadMinima(State& state, ShapeId shape, Tense tense);

// Whether a pod may run on a node that is held for another job.
bool MayUseHeld(const State& state, const PodState& pod, const NodeState& node);
// What the node's counters have left, in that tense. The node must have counters.
std::vector<int64_t> CountersLeft(const State& state, const NodeState& node, Tense tense);
// Adds to `left`, `sign` times, what a pod of the shape takes from the counters with its devices.
void TakeCounters(const DeviceCounters& counters,
                  const Shape& shape,
                  const DeviceSet& devices,
                  int sign,
                  std::vector<int64_t>& left);
// Gives each kind that the shape asks for its devices, in the order of Shape::extended; `out` may
// be null. False: they are too few.
bool ShareOutKinds(const State& state,
                   const Shape& shape,
                   const NodeState& node,
                   Tense tense,
                   std::vector<DeviceSet>* out);
bool FitsRoom(const State& state, const Shape& shape, const NodeState& node, Tense tense);
Lack WhyNot(State& state, PodId pod, NodeId node, Tense tense, const SpreadMinima& minima);
// The same of a node with room enough.
Lack WhyNotBesidesRoom(
    State& state, PodId pod, NodeId node, Tense tense, const SpreadMinima& minima);
bool Fits(State& state, PodId pod, NodeId node, Tense tense);
// The devices the pod would get on a node that it fits.
DeviceSet ChooseDevices(const State& state, const Shape& shape, const NodeState& node, Tense tense);
// The first of the nodes, which are ranks, that the pod fits; its requests must not depend on other
// pods. `filter` null: all of them.
NodeId FirstFitting(
    State& state, PodId pod, const RankBitmap& nodes, Tense tense, const NodeFilter* filter);
// `filter` null: all nodes.
Spot FindSpot(State& state, PodId pod, Tense tense, const NodeFilter* filter = nullptr);

}  // namespace swell::sched
