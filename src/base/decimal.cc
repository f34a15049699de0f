#include "base/decimal.h"

#include <cstdio>

namespace swell {

std::string Decimal(double value, int digits) {
  char text[400];  // the largest double has 309 digits before the point
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

}  // namespace swell
