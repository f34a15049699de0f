// Finds the share of a project that cannot be meant.
// - Threads: pure functions.
#pragma once

#include <optional>
#include <string>

#include "json/value.h"

namespace swell::controllers {

struct ShareFault {
  std::string field;    // spec.resources.gpu.limit
  std::string message;  // Invalid value: 2: is below the quota of 4
};

// The first limit that is below its quota.
std::optional<ShareFault> FindShareFault(const json::Value& project);

}  // namespace swell::controllers
