// RunDetached: a cluster in a process of its own, which outlives this one and its terminal.
// - Threads: the main thread, before there is any other: it forks.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"

namespace swell::ops {

// What came of a start: what to tell the user, or why it failed. Only the first report counts.
using StartReport = std::function<void(const Result<std::string>& outcome)>;

// The child leaves the terminal, appends what it prints to the file, and runs `run`, whose result
// is its exit status. Returns the first report of the child, or an error if it ended without one.
Result<std::string> RunDetached(const std::string& log_file,
                                const std::function<int(const StartReport&)>& run);

}  // namespace swell::ops
