// RoleJob: kinds that are a map of roles and differ in little else: Kubeflow's TFJob, XGBoostJob,
// PaddleJob, JAXJob and MPIJob (kubeflow.org/v1), KubeDL's TFJob, XGBoostJob, MPIJob,
// XDLJob and MarsJob (training.kubedl.io/v1alpha1). Each member has a headless service of its own
// name; the environment differs by kind. All members are one rigid gang.
//
// - Threads: stateless; core executor only.
#pragma once

#include <memory>
#include <vector>

#include "jobs/kinds/job_kind.h"

namespace swell::jobs {

std::vector<std::unique_ptr<JobKind>> MakeRoleJobKinds(const JobKindOptions& options);

}  // namespace swell::jobs
