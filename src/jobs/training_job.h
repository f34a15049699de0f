// Swell's own job, TrainingJob (swell.dev/v1): any number of roles, each rigid or elastic.
// - Threads: stateless; core executor only.
#pragma once

#include <memory>

#include "jobs/job_kind.h"

namespace swell::controllers {

struct TrainingJobOptions {
  bool host_network = false;  // pods share the machine's ports: each job gets its own
};

// Which of a job's roles counts: master, chief, leader or launcher if there is one, else the first
// by name. Its first pod is where the others meet, and its end is the job's.
std::unique_ptr<JobKind> MakeTrainingJobKind(TrainingJobOptions options);

}  // namespace swell::controllers
