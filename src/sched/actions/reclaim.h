// Victims in other queues, by fairness: what reclaim and shrink share.
// - Threads: none; the scheduler's thread.
#pragma once

#include <string>

#include "sched/actions/make_room.h"

namespace swell::sched {

SearchOutcome ReclaimFor(CycleContext& context,
                         const Action& action,
                         const WaitingJob& job,
                         Victims victims);

// "project b has a fair share of 4 GPUs and would hold 4 GPUs; project a held 8 GPUs with a fair
// share of 4 GPUs and a quota of 4 GPUs".
std::string FairnessReason(const CycleContext& context,
                           const EvictionPlan& evictions,
                           PodId victim);

}  // namespace swell::sched
