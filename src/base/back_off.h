// BackOff: how long to wait before the next try.
// - Threads: a pure function.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace swell {

// `first` after the first failure, twice as long after each further one, at most `most`.
// `failures`: those before the last.
inline Duration BackOff(Duration first, Duration most, int failures) {
  constexpr int kDoublingsMax = 10;
  return std::min(most, first * (1 << std::min(failures, kDoublingsMax)));
}

}  // namespace swell
