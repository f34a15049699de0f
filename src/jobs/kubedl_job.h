// PyTorchJob as KubeDL defines it (training.kubedl.io/v1alpha1). With enableElastic or an
// elasticPolicy it is a torch elastic job: workers meet in a rendezvous whose options come before
// their own arguments, each has a service of its own, and the Master has no part in the training.
// Controllers/autoscaler sets how many workers there are.
// - Threads: a JobKind has no state.
#pragma once

#include <memory>

#include "jobs/job_kind.h"
#include "jobs/pytorch_job.h"

namespace swell::controllers {

inline const client::Resource kKubedlPyTorchJobs{"training.kubedl.io", "v1alpha1", "pytorchjobs",
                                                 true};

std::unique_ptr<JobKind> MakeKubedlJobKind(JobKindOptions options);

}  // namespace swell::controllers
