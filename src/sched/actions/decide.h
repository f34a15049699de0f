// DecideBinds, DecideNominations, DecideEvictions: turn changes of the state into Decisions. Only
// this part of a cycle makes strings.
// - Threads: none; the scheduler's thread. What is decided is assumed in the state at once.
#pragma once

#include <vector>

#include "sched/cycle/action.h"
#include "sched/cycle/context.h"

namespace swell::sched {

void DecideBinds(CycleContext& context, const Action& action, const std::vector<PodId>& pods);
void DecideNominations(CycleContext& context, const Action& action, const std::vector<PodId>& pods);
// Without a beneficiary there is at least one victim.
void DecideEvictions(CycleContext& context, const Action& action, const EvictionPlan& evictions);
// Removes the decisions that were taken back.
void DropTakenBack(CycleContext& context);

}  // namespace swell::sched
