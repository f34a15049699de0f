// Victims of lower priority in the job's own queue: what preempt and shrink share.
// - Threads: none; the scheduler's thread.
#pragma once

#include <string>

#include "sched/actions/make_room.h"

namespace swell::sched {

SearchOutcome PreemptFor(CycleContext& context,
                         const Action& action,
                         const WaitingJob& job,
                         Victims victims);

// "priority 100 is above 50".
std::string PriorityReason(const CycleContext& context,
                           const EvictionPlan& evictions,
                           PodId victim);

}  // namespace swell::sched
