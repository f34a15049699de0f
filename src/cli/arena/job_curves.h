// JobCurves: where a job that exists already writes its curves, so that a TensorBoard can be put
// beside it.
// - Threads: pure functions.
#pragma once

#include <string>

#include "cli/jobs/pytorch_spec.h"
#include "cli/views/job_view.h"

namespace swell::cli::arena {

struct JobCurves {
  std::string log_dir;
  PyTorchSpec spec;  // what TensorBoard shares with the job's pods: image, volume, where it may run
};

// kConflict says what the job lacks for curves that another pod could read.
Result<JobCurves> CurvesOf(const JobView& job);

}  // namespace swell::cli::arena
