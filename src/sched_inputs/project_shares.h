// Finds what the spec of a project says that cannot be meant: a limit below its quota, or a
// namespace that is Kubernetes' own.
// - Threads: pure functions.
#pragma once

#include <optional>
#include <string>

#include "json/value.h"

namespace swell::sched_inputs {

struct ProjectFault {
  std::string field;    // spec.resources.gpu.limit
  std::string message;  // Invalid value: 2: is below the quota of 4
};

std::optional<ProjectFault> FindProjectFault(const json::Value& project);

}  // namespace swell::sched_inputs
