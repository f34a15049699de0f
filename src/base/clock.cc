#include "base/clock.h"

namespace swell {

WallTime RealClock::Now() const {
  auto since = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<Duration>(since).count()};
}

SteadyTime RealClock::Steady() const {
  auto since = std::chrono::steady_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<Duration>(since).count()};
}

}  // namespace swell
