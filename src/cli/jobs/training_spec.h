// TrainingSpec: what `runai submit` asks for, and the TrainingJob (swell.dev/v1) or Job (batch/v1)
// that says it.
// - Threads: values and pure functions.
#pragma once

#include <string>
#include <vector>

#include "cli/jobs/pytorch_spec.h"

namespace swell::cli {

struct TrainingSpec {
  PyTorchSpec pod;  // one instance; workers, gpus, priority and project are of the job
  std::string workload = "train";
  std::string role = "worker";
  int64_t workers_min = 0;  // fewer than pod.workers: elastic; 0: rigid
  // Node labels whose values all instances are to share.
  std::string topology_required, topology_preferred;
  std::string preemptibility;  // Preemptible, NonPreemptible or "" (by its priority)
  std::string restart_policy = "OnFailure";
  int64_t backoff_limit = -1;
  // Runs of their own instead of one job with workers; 0: not asked for.
  int64_t completions = 0, parallelism = 0;

  bool Repeats() const { return completions > 0 || parallelism > 0; }
};

// A TrainingJob; or, of a workload that repeats, a batch/v1 Job. kBadRequest (misuse) naming the
// flag whose value cannot be meant.
Result<json::Value> MakeTrainingJob(const TrainingSpec& spec);

// A Service of the job's ports, owned by the job as the server made it. "8888", "80:8888".
struct PortPair {
  int64_t outside = 0;
  int64_t inside = 0;
};
Result<PortPair> ParsePort(const std::string& text);
json::Value MakeJobService(const json::Value& job,
                           const std::string& role,
                           const std::vector<PortPair>& ports,
                           const std::string& type);

}  // namespace swell::cli
