// Swell's own job, TrainingJob (swell.dev/v1): any number of roles, each rigid or elastic.
// - Threads: stateless; core executor only.
#pragma once

#include <memory>

#include "jobs/kinds/job_kind.h"

namespace swell::jobs {

// Which of a job's roles counts: master, chief, leader or launcher if there is one, else the first
// by name. Its first pod is where the others meet, and its end is the job's.
std::unique_ptr<JobKind> MakeTrainingJobKind(const JobKindOptions& options);

}  // namespace swell::jobs
