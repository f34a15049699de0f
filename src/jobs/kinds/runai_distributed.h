// RunaiDistributed: Run:ai's DistributedWorkload (run.ai/v2alpha1): a master and workers of a
// framework. They are those of Kubeflow's job of that framework, whose kind prepares them.
// - Threads: a JobKind has no state.
#pragma once

#include <memory>

#include "jobs/kinds/job_kind.h"
#include "kube/api/crd/definitions.h"

namespace swell::jobs {

std::unique_ptr<JobKind> MakeRunaiDistributedKind(const api::Definition& definition,
                                                  const JobKindOptions& options);

}  // namespace swell::jobs
