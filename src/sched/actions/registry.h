// The registry of actions: what a cycle does, in a fixed order: it places what fits, makes room
// (the least disruptive way first), stops stale gangs, then gives out idle room and rebalances.
//
// A new action is a file that defines its function below, and a line in registry.cc.
//
// - Threads: constants; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sched/cycle/action.h"

namespace swell::sched {

const Action& AllocateAction();
const Action& ShrinkAction();
const Action& ConsolidateAction();
const Action& ReclaimAction();
const Action& PreemptAction();
// The second half of ConsolidateAction, under the same name.
const Action& ConsolidateDeferredAction();
const Action& StaleGangsAction();
const Action& GrowAction();
const Action& RebalanceAction();

struct ActionStep {
  // In CycleOptions::actions and in records of cycles, so it never changes. Actions that are added
  // take the next number, wherever they are in the order.
  int number = 0;
  const Action* action = nullptr;
};

// In the order in which a cycle runs them.
const std::vector<ActionStep>& ActionSteps();
// The actions' names, each once, in that order.
std::vector<std::string> ActionNames();
// Null: no action has this name.
const Action* FindAction(std::string_view name);
// The action's bit in CycleOptions::actions; 0: no action has this name.
uint32_t ActionBit(std::string_view name);
uint32_t AllActionBits();

}  // namespace swell::sched
