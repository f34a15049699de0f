// Labels and annotations that make a job one of Slurm's.
// - Threads: constants.
// - Invariants: values are plain text; readers cope with nonsense.
#pragma once

#include <string_view>

namespace swell::cli::slurm {

// Labels of the job, its pods and the ConfigMap of its script.
inline constexpr std::string_view kJobId = "swell.dev/slurm-job-id";
inline constexpr std::string_view kArrayJobId = "swell.dev/slurm-array-job-id";
inline constexpr std::string_view kArrayTaskId = "swell.dev/slurm-array-task-id";
// An annotation of the job: what sbatch was told, as a JSON object.
inline constexpr std::string_view kRequest = "swell.dev/slurm-request";
// The key of a ConfigMap in which the record of a cancelled job is.
inline constexpr std::string_view kRecordKey = "record";

}  // namespace swell::cli::slurm
