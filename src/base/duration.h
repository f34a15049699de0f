// Durations as people write them, and as Go prints them.
// - Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace swell {

// Go's syntax ("1h30m", "1.5s", "500ms", "0") without a sign, and days ("3d"); a number alone is
// in seconds. Empty for anything else, and for more than a hundred years.
std::optional<Duration> ParseDuration(std::string_view text);

// "1h0m0s", "1m30s", "1.5s", "500ms", "0s".
std::string FormatDuration(Duration duration);

}  // namespace swell
