// Placing waiting pods without stopping others: what allocate and grow share.
// - Threads: none; the scheduler's thread.
#pragma once

#include <vector>

#include "sched/cycle/action.h"
#include "sched/cycle/context.h"

namespace swell::sched {

// Binds the pods, all or none, in the first pool that has room now; else promises them room that
// terminating pods leave.
bool TryPlaceNowOrLater(CycleContext& context,
                        const Action& action,
                        GroupId id,
                        const std::vector<PodId>& pods);
// Places members beyond their gangs' minima, one per group and turn.
void PlaceElastic(CycleContext& context, const Action& action);

}  // namespace swell::sched
