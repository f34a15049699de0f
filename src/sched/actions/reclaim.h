// Victims in other queues, by fairness: what reclaim and shrink share.
// - Threads: none; the scheduler's thread.
#pragma once

#include <string>

#include "sched/actions/make_room.h"

namespace swell::sched {

// `surplus_only`: takes only members beyond their gangs' minimum.
SearchOutcome ReclaimFor(Context& context,
                         const Action& action,
                         const WaitingJob& job,
                         bool surplus_only);

// "project b is due 4 GPUs and comes to 4; project a held 8 with a fair share of 4 and a quota of
// 4".
std::string FairnessReason(const Context& context, const Evictions& evictions, PodId victim);

}  // namespace swell::sched
