// Numbers with a fixed number of digits after the point.
// - Threads: pure functions.
#pragma once

#include <string>

namespace swell {

// Decimal(0.5, 2): "0.50".
std::string Decimal(double value, int digits);

}  // namespace swell
