// RunHooks: programs of the machine that prepare a container's files for its devices, as the OCI
// runtime specification has them. They run with the machine's root and see the container's below
// the container's directory.
// - Threads: the calling process has one thread.
#pragma once

#include <string>

#include "base/result.h"
#include "kube/process/shim/shim_spec.h"

namespace swell::process {

// When all of the container's files are mounted. `dir` is its directory on the host, whose root is
// still at `kOldRoot`. A program that fails, or takes too long, is an error with what it said.
Status RunHooks(const ShimSpec& spec, const std::string& dir);

}  // namespace swell::process
