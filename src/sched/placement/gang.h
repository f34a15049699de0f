// Gangs: within which queues a group may start, and placing its pods whole.
// - Threads: none; pure functions over a State, which is changed through the Statement given and
//   its caches alone.
#pragma once

#include <string>
#include <vector>

#include "sched/placement/placement.h"
#include "sched/state/needs.h"
#include "sched/state/state.h"
#include "sched/state/statement.h"

namespace swell::sched {

// Whether the group may be looked at: known, in a known queue.
bool Schedulable(const State& state, const GroupState& group);
// Whether the pods stay within the limits (and, if not preemptible, quotas) of every queue above
// them, and leave what other queues keep of their quotas: at once, counting what terminates and
// still holds its room, or when that is gone. `why` gets a sentence when they do not.
bool FitsQueues(State& state,
                const GroupState& group,
                const std::vector<PodId>& pods,
                int pool,
                Tense tense,
                std::string* why = nullptr);
// Whether what the group's queues hold and were promised is within their limits as it is.
bool WithinLimits(State& state, const GroupState& group, int pool);
// The quota half alone: no eviction inside the queue can mend it.
bool FitsQuotas(State& state,
                const GroupState& group,
                const std::vector<PodId>& pods,
                int pool,
                std::string* why = nullptr);
// Binds (kNow) or promises (kFuture) all pods or none, heeding the group's topology.
bool PlaceAll(Statement& trial,
              State& state,
              GroupId group,
              const std::vector<PodId>& pods,
              Tense tense,
              const NodeFilter* within);

}  // namespace swell::sched
