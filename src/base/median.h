// UpperMedian: the value in the middle.
// - Threads: a pure function.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace swell {

// The larger of two in the middle; 0 where there are no values.
inline double UpperMedian(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace swell
