// SizeProgram: which size each job gets when each size has a cost and GPUs are limited: the integer
// program of Sia (SOSP'23), solved exactly.
//
//   least  Σ cost of the chosen sizes,  at most one size a job,  Σ GPUs of a group <= its capacity
//
// There are few kinds of GPU, so prices say nearly everything: the best prices per GPU of each
// group (the ellipsoid method finds them) give a bound, and each size an amount by which it would
// miss that bound. Only sizes that miss little can be in a solution that misses little. Those are
// tried all, job by job, over the GPUs in use so far; if no solution is found, with twice as much.
//
// - Threads: pure functions.
// - Invariants: equal input, equal choice.
#pragma once

#include <vector>

namespace swell::lab {

struct SizeOption {
  int group = 0;
  int gpus = 1;
  double cost = 0;  // beside getting nothing, which costs 0
};

struct SizeChoice {
  std::vector<int> chosen;  // by job: which of its options; -1: none
  double cost = 0;
  double bound = 0;    // no choice costs less
  bool exact = false;  // none costs less than this one; false: there was too much to try
};

// Every option fits an empty cluster. `step`: a difference of costs that matters; where all costs
// are multiples of one number, that one.
SizeChoice ChooseSizes(const std::vector<std::vector<SizeOption>>& jobs,
                       const std::vector<int>& capacity,
                       double step);

}  // namespace swell::lab
