// KubedlJob: KubeDL's PyTorchJob (training.kubedl.io/v1alpha1). With enableElastic or an
// elasticPolicy it is an elastic job: its workers meet in a rendezvous, whose options are put
// before their own arguments. Each worker has a service, and the Master does not train. Autoscaler
// sets the number of workers.
// - Threads: a JobKind has no state.
#pragma once

#include <memory>

#include "jobs/kinds/job_kind.h"
#include "jobs/kinds/pytorch_job.h"

namespace swell::jobs {

inline const client::Resource kKubedlPyTorchJobs{"training.kubedl.io", "v1alpha1", "pytorchjobs",
                                                 true};

std::unique_ptr<JobKind> MakeKubedlJobKind(const JobKindOptions& options);

}  // namespace swell::jobs
