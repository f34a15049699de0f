// History: what jobs of a live cluster did, as a trace that policies can play, and as the run that
// it was.
//
// - Threads: plain values and pure functions.
// - Invariants: equal jobs in any order, equal trace; both parts have the same jobs in one order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/simulator.h"
#include "lab/trace/trace.h"

namespace swell::lab {

// A job that is over. Times are seconds since 1970.
struct PastJob {
  std::string name;    // of any two jobs different
  std::string tenant;  // its project
  int64_t submitted_s = 0;
  int64_t started_s = 0;
  int64_t ended_s = 0;
  // Requested, or what an elastic job held on average; a part of a GPU is possible.
  double gpus = 0;
  double gpus_max = 0;  // of an elastic job; else as `gpus`
  double gpus_min = 0;  // of an elastic job; else as `gpus`
  int priority = 0;
  double work_gpu_s = 0;  // held and productive
  double held_gpu_s = 0;
  int restarts = 0;
};

struct History {
  Trace trace;
  RunOutcome as_it_was;  // without decisions
  int64_t start_s = 0;   // held without progress at a start, in the median of the jobs
};

// Leaves out, and counts, jobs that did no work. kNotFound: no job is left.
Result<History> HistoryOf(const std::string& name, std::vector<PastJob> jobs);

}  // namespace swell::lab
