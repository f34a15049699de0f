// Labels and annotations that make a job one of Slurm's.
// - Threads: constants.
// - Invariants: values are plain text; readers cope with nonsense.
#pragma once

#include <string_view>

#include "kube/api/meta/gate_keys.h"

namespace swell::cli::slurm {

// Labels of the job, its pods and the ConfigMap of its script.
inline constexpr std::string_view kJobId = api::keys::kSlurmJobId;
inline constexpr std::string_view kArrayJobId = "swell.dev/slurm-array-job-id";
inline constexpr std::string_view kArrayTaskId = "swell.dev/slurm-array-task-id";
// An annotation of the job: what sbatch was told, as a JSON object.
inline constexpr std::string_view kRequest = "swell.dev/slurm-request";
// An annotation of a node: why an administrator let it take no more jobs.
inline constexpr std::string_view kDrainReason = "swell.dev/slurm-drain-reason";
// The partition of jobs that name none: every node.
inline constexpr std::string_view kAllPartition = "all";
// The key of a ConfigMap in which the record of a cancelled job is, and the label that it has.
inline constexpr std::string_view kRecordKey = "record";
inline constexpr std::string_view kRecordLabel = "swell.dev/slurm-record";

}  // namespace swell::cli::slurm
