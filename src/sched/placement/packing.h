// Packing: a gang goes to few nodes, because its members talk to each other, and breaks no large
// piece of free room for little.
// - Threads: none; pure functions over a State, which is changed through the Statement given and
//   its caches alone.
#pragma once

#include <optional>
#include <vector>

#include "sched/placement/placement.h"
#include "sched/state/statement.h"

namespace swell::sched {

// True: all pods are placed. False: they fit nowhere, and none is placed. nullopt: packing does not
// apply, so the caller places each pod on the node that it prefers.
std::optional<bool> PlacePacked(Statement& trial,
                                State& state,
                                const std::vector<PodId>& pods,
                                Tense tense,
                                const NodeFilter* within);

}  // namespace swell::sched
