// Reservations: nodes held for jobs that have waited long.
// - Threads: none; the scheduler's thread.
#pragma once

#include "sched/cycle/context.h"

namespace swell::sched {

// Chooses the held nodes anew, at the beginning of a cycle. placement.h's MayUseHeld says who may
// use them.
void Reserve(CycleContext& context);

}  // namespace swell::sched
