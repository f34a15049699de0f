// MpiJob: the MPIJob of Kubeflow (kubeflow.org/v1 and v2beta1) and of KubeDL
// (training.kubedl.io/v1alpha1): a launcher starts processes in workers.
//
// The launcher's mpirun reads its hosts from /etc/mpi/hostfile and reaches them through
// /etc/mpi/kubexec.sh. That runs `kubectl exec`, with an account that may do so in the job's own
// workers only; or, where the image has no kubectl, its own ssh. Each job has a key pair for that,
// and workers run their image's SSH server where it has one. The names of workers resolve in all
// pods.
//
// - Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "jobs/kinds/job_kind.h"

namespace swell::jobs {

inline constexpr std::string_view kLauncher = "Launcher";

// The ConfigMap with hostfile and scripts; the Secret with SSH keys, made anew at each call; the
// launcher's account and what it may.
Result<std::vector<json::Value>> MpiDependents(const json::Value& job,
                                               const JobSpec& spec,
                                               const JobKindOptions& options);
// Adds volumes, environment and the workers' command.
void PrepareMpiPod(const json::Value& job,
                   const ReplicaSpec& replica,
                   const JobKindOptions& options,
                   json::Value& pod);

}  // namespace swell::jobs
