// What a cycle does, step by step; scheduler.cc has the order.
// - Threads: none. Each tries on the state, and keeps what it did whole or not at all.
#pragma once

#include "sched/cycle/context.h"

namespace swell::sched {

// Holds nodes for jobs that have waited long.
void Reserve(Context& context);

void Allocate(Context& context);
void Shrink(Context& context);
void Consolidate(Context& context);
void Reclaim(Context& context);
void Preempt(Context& context);
// Serves those that Consolidate put off.
void ConsolidateDeferred(Context& context);
void StaleGangs(Context& context);
void Grow(Context& context);

// Explains why each waiting group waits.
void ExplainWaiting(Context& context);

}  // namespace swell::sched
