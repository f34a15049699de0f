// Topology: keeping the pods of a group, a subgroup or a pod set within one value of a node label.
//
// Thread-safety: none; pure functions over a State.
#pragma once

#include <vector>

#include "sched/placement.h"
#include "sched/state.h"
#include "sched/statement.h"

namespace swell::sched {

bool HasTopology(const GroupState& group);
// Binds (kNow) or promises (kFuture) one pod.
bool PlaceOne(Statement& trial, State& state, PodId pod, Tense tense, const NodeFilter* filter);
// Places all pods or returns false with some placed; the caller rolls back.
bool PlaceInTopology(
    Statement& trial, State& state, GroupId group, const std::vector<PodId>& pods, Tense tense);
// The sets of nodes among which a group's required top level lets a search choose: one filter per
// domain, the fullest first; one filter of all nodes where nothing is required.
std::vector<NodeFilter> RequiredDomains(const State& state, GroupId group);

}  // namespace swell::sched
