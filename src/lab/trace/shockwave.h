// Shockwave's traces (NSDI'23): jobs whose batch grows while they train.
//
// A line has, between tabs: application and batch ("LM (batch size 10)"), command, folder, name of
// the flag for steps, whether it needs data, steps, GPUs, how the batch grows (static, accordion,
// gns), priority, a deadline, seconds at the first batch, arrival in seconds. How fast an
// application trains with a batch is in a second file: {"v100": {"('LM (batch size 10)', 1)":
// {"null": steps a second}}}.
//
// The growth of the batch does not depend on the scheduler, so a job is as long as all of its
// epochs together.
//
// - Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "lab/trace/trace.h"

namespace swell::lab {

inline constexpr std::string_view kShockwaveSpeeds = "tacc_throughputs.json";  // beside the trace

bool IsShockwave(std::string_view text);
Result<Trace> ParseShockwave(const std::string& path,
                             std::string_view text,
                             std::string_view speeds);

}  // namespace swell::lab
