// Jobs that are a map of roles and differ in little else: TFJob, XGBoostJob, PaddleJob, JAXJob and
// MPIJob of Kubeflow (kubeflow.org/v1), TFJob and XGBoostJob of KubeDL
// (training.kubedl.io/v1alpha1). Every member has a headless service of its own name; what its
// processes are told of the others is each kind's own. A gang of all members; none of them is
// elastic.
//
// - Threads: stateless; core executor only.
#pragma once

#include <memory>
#include <vector>

#include "jobs/job_kind.h"

namespace swell::controllers {

std::vector<std::unique_ptr<JobKind>> MakeRoleJobKinds(JobKindOptions options);

}  // namespace swell::controllers
