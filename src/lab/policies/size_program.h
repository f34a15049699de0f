// SizeProgram: chooses a size for each job when each size has a cost and GPUs are limited. It
// solves the integer program of Sia (SOSP'23) exactly.
//
//   least  Σ cost of the chosen sizes,  at most one size a job,  Σ GPUs of a group <= its capacity
//
// A price per GPU of each group gives a lower bound of the cost. The ellipsoid method finds the
// prices with the highest bound, which is close to the optimum because groups are few. Each size
// misses that bound by some amount, and the amounts of a solution add up. So the search takes only
// sizes that miss the bound by less than a budget together, job by job, over the GPUs in use so
// far. If it finds no solution, it doubles the budget. It follows 60,000 states of a job at most,
// fewer for more than 2,000 jobs, so that it takes at most some 1.5 GiB.
//
// - Threads: pure functions.
// - Invariants: equal input, equal choice.
#pragma once

#include <vector>

namespace swell::lab {

struct SizeOption {
  int group = 0;
  int gpus = 1;
  double cost = 0;  // relative to getting nothing
};

struct SizeChoice {
  std::vector<int> chosen;  // by job: the index of its option; -1: none
  double cost = 0;
  double bound = 0;    // no choice costs less
  bool exact = false;  // no choice costs less; false: the search was cut off
};

// Every option must fit an empty cluster. `step`: the smallest difference of costs that matters. If
// all costs are multiples of one number, it is that number.
SizeChoice ChooseSizes(const std::vector<std::vector<SizeOption>>& jobs,
                       const std::vector<int>& capacity,
                       double step);

}  // namespace swell::lab
