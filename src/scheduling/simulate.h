// Simulation: scheduling cycles over a state that was read from a file, with the scheduler's own
// code. It contacts nothing; the same input gives the same output, byte for byte.
//
// Between cycles, transitions complete: what was bound runs; what was promised room or is
// terminating waits again, as if its pod had been made anew under the same name.
//
// - Threads: pure functions.
#pragma once

#include "sched/cycle/cycle.h"
#include "scheduling/state_file.h"

namespace swell::scheduling {

struct SimulateOptions {
  WallTime now;  // stands still through all cycles
  int cycles = 1;
  sched::CycleOptions cycle;
  sched::Settings settings;  // of a cluster: StateInputs has its own
  bool keep_terminating = false;
};

// {"now": …, "cycles": [{"decisions", "pods", "nodes", "queues", "settled"}]}
json::Value Simulate(StateInputs inputs, const SimulateOptions& options);

}  // namespace swell::scheduling
