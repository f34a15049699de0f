// Topology: keeping the pods of a group, a subgroup or a pod set within one value of a node label.
// - Threads: none; pure functions over a State.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "sched/placement/placement.h"
#include "sched/state/state.h"
#include "sched/state/statement.h"

namespace swell::sched {

// Binds (kNow) or promises (kFuture) one pod.
bool PlaceOne(Statement& trial, State& state, PodId pod, Tense tense, const NodeFilter* filter);
// Places one pod within the nodes given, somehow; null filter: all nodes.
using PlacePod = std::function<bool(PodId, const NodeFilter*)>;
// Places pods within the nodes given together, as PlacePacked does.
using PlacePods = std::function<std::optional<bool>(const std::vector<PodId>&, const NodeFilter*)>;
// Places all pods or returns false with the trial as it was. `together` null: each by itself.
bool PlaceInTopology(Statement& trial,
                     const State& state,
                     GroupId group,
                     const std::vector<PodId>& pods,
                     const PlacePod& place,
                     const PlacePods& together,
                     const NodeFilter* within);

// The same, in one tense, for pods that by their own inter-pod affinity must be near each other:
// the best place of the first pod may be too small for all. False if no such pods exist.
bool PlaceNear(Statement& trial,
               const State& state,
               GroupId group,
               const std::vector<PodId>& pods,
               Tense tense,
               const PlacePod& place,
               const NodeFilter* within);

}  // namespace swell::sched
