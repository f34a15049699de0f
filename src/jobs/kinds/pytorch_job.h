// PytorchJob: Kubeflow's PyTorchJob (kubeflow.org/v1): one Master and Workers under
// torch.distributed. It behaves as Kubeflow's training operator v1 does.
// - Threads: a JobKind has no state.
#pragma once

#include <memory>

#include "jobs/kinds/job_kind.h"

namespace swell::jobs {

std::unique_ptr<JobKind> MakePyTorchJobKind(const JobKindOptions& options);

// What kinds of PyTorch jobs have in common, read from their spec: Master and Worker, how far
// spec.elasticPolicy lets the workers shrink and grow, and the port that their leader listens at.
Status ReadPyTorchRoles(const json::Value& body, JobSpec& spec);
Status ReadElasticPolicy(const json::Value& body, JobSpec& spec);
inline constexpr std::string_view kPyTorchPortName = "pytorchjob-port";
int64_t PyTorchPort(const json::Value& job, const JobSpec& spec, const JobKindOptions& options);

}  // namespace swell::jobs
