// MachineLimits: what this machine does not permit the pods of its embedded cluster, for people.
// - Threads: pure functions over the file system.
#pragma once

#include <string>
#include <vector>

#include "ops/data_dir.h"

namespace swell::ops {

// Each as "WHAT: WHY"; none where all is possible, or no pods run as processes.
std::vector<std::string> MachineLimits(const DataDir& dir);
// Those that an earlier cluster found do not hold for one whose pods are simulated. The caller has
// locked the directory: it may be another cluster's.
void ForgetMachineLimits(const DataDir& dir);
// A table with a heading; empty without limits.
std::string FormatMachineLimits(const std::vector<std::string>& limits);

}  // namespace swell::ops
