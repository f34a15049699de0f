// Which seeds a test plays: from SWELL_SEED on, else from 1; SWELL_SEEDS of them, else one where a
// seed was named and `usual` where none was. For tests only. Thread-safety: pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "base/strings.h"

namespace swell {

struct TestSeeds {
  uint64_t first = 1;
  uint64_t count = 1;
  bool replayed = false;  // somebody named the seed: it may show little

  static TestSeeds FromEnvironment(uint64_t usual) {
    auto number = [](const char* name) -> std::optional<uint64_t> {
      const char* said = std::getenv(name);
      return said == nullptr ? std::nullopt : ParseUint(said);
    };
    const auto first = number("SWELL_SEED");
    const auto count = number("SWELL_SEEDS");
    return {first.value_or(1), std::max<uint64_t>(1, count.value_or(first ? 1 : usual)),
            first.has_value()};
  }
};

}  // namespace swell
