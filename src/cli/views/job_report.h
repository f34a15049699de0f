// JobReport: what a job's training script last reported: how far it is, how fast, and its loss. The
// pages, the history and commands show the same numbers.
// - Threads: pure functions.
// - Invariants: the numbers come from the script; values that are not finite are left out.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cli/views/job_view.h"

namespace swell::cli {

struct JobReport {
  std::optional<int64_t> step, epoch;  // of the last checkpoint
  std::optional<double> throughput;    // a second, in `unit`
  std::string_view unit = "steps";     // or "records"
  std::optional<double> loss;
};

// What the pod reported that leads: the first that runs and has reported, else the last that has.
// `only_running` leaves out what pods reported that do not run any more.
JobReport ReportOf(const JobView& job, bool only_running = false);

// Until the job is done, at the speed of the last minutes. Absent while it does not train.
std::optional<int64_t> RemainingSeconds(const JobView& job);
// Steps that are done, from 0 to 1. Absent: the number of all is not known.
std::optional<double> DoneShare(const JobView& job);

}  // namespace swell::cli
