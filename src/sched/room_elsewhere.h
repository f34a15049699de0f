// RoomsElsewhere: how many members a running group could have on nodes of another kind, were it to
// leave its own: what a job needs to know before it moves to GPUs of another type.
//
// It tries it on the model and takes it back. So pools, limits, quotas, taints, topology and
// devices count as they do in a cycle. Only free room counts: nodes with pods that terminate, nodes
// held for a large job, and nodes on which other work waits to start are left out. A group that is
// within its quotas is offered no room beyond them, where others could take it back.
//
// - Threads: none; the thread that owns the model.
// - Invariants: the model is afterwards as before, and has no new version.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sched/model.h"

namespace swell::sched {

struct RoomElsewhere {
  std::string value;    // of the label
  int32_t members = 0;  // of the set with the goodput curve, the minima of all sets included
};

// Kinds of nodes are the values of `label`. By value; only those with room for every minimum.
// Nothing for a group that has no curve, is not preemptible, is about to change, or whose members
// with devices are on nodes of several kinds. What the affinity of its pods requires of the label
// does not count.
std::vector<RoomElsewhere> RoomsElsewhere(Model& model,
                                          std::string_view group,
                                          const std::string& label);

}  // namespace swell::sched
