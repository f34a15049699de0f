// LinearProgram: the most that a weighted sum can be within linear limits, by the simplex method.
//
//   most  Σ gain · x,  each row  Σ coefficient · x <= limit,  x >= 0
//
// - Threads: pure functions.
// - Invariants: equal input, equal solution. It is a corner: where several are equally good, the
//   first that the method comes to.
#pragma once

#include <vector>

namespace swell::lab {

struct LinearRow {
  std::vector<double> coefficients;  // one for each variable
  double limit = 0;                  // at least 0, so that all zeros are a solution
};

// The value of each variable. The limits must bound the sum: a variable that no limit bounds, apart
// from rounding errors, must gain nothing. If rounding keeps the method from its end, the answer is
// the corner that it has reached.
std::vector<double> MaximizeWithin(const std::vector<double>& gains,
                                   const std::vector<LinearRow>& rows);

}  // namespace swell::lab
