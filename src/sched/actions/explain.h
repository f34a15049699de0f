// ExplainWaiting: why each waiting group waits, and the smallest change that would start it.
// - Threads: none; the scheduler's thread.
#pragma once

#include "sched/cycle/context.h"

namespace swell::sched {

// Tells, at the end of a cycle, why each waiting group waits, where the reason changed.
void ExplainWaiting(CycleContext& context);

}  // namespace swell::sched
