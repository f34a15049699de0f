// RoleJob: kinds that are a map of roles and differ in little else: Kubeflow's TFJob, XGBoostJob,
// PaddleJob, JAXJob and MPIJob (kubeflow.org/v1), KubeDL's TFJob, XGBoostJob, MPIJob, XDLJob,
// MarsJob and ElasticDLJob (training.kubedl.io/v1alpha1). Each member has a headless service of its
// own name; the environment differs by kind. All members are one gang, which is rigid but for the
// workers of an elastic MPIJob.
//
// - Threads: stateless; core executor only.
#pragma once

#include <memory>
#include <vector>

#include "jobs/kinds/job_kind.h"

namespace swell::jobs {

std::vector<std::unique_ptr<JobKind>> MakeRoleJobKinds(const JobKindOptions& options);

}  // namespace swell::jobs
