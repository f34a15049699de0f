// Past use: what each queue has used of each pool, counting half after every half-life, so that
// weights can be corrected by it (Settings::past_share).
//
// It is counted from cycle to cycle. To outlive the process it is written down now and then and
// read again at the start; what was used between the last note and the end is forgotten.
//
// - Threads: none.
#pragma once

#include <string>
#include <vector>

#include "sched/cycle/cycle.h"

namespace swell::sched {

class Model;
struct State;

// Past use of one queue (with its subtree) in one pool, as of `as_of`.
struct PastUse {
  std::string queue;
  std::string pool;  // empty: nodes of no pool
  double gpu_hours = 0;
  double cpu_hours = 0;
  double memory_gib_hours = 0;
  WallTime as_of;
};

// Decays what was counted, and adds what was held for `passed`.
void CountPastUse(State& state, const Settings& settings, Duration passed);
// By queue and pool, those that count for something; as of the last cycle.
std::vector<PastUse> PastUses(const Model& model);
// Adds what is noted, as it counts now. Unknown pools are left out, and so is what makes no sense.
void AddPastUses(Model& model,
                 const Settings& settings,
                 const std::vector<PastUse>& notes,
                 WallTime now);

}  // namespace swell::sched
