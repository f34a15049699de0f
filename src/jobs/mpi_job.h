// MPIJob of Kubeflow (kubeflow.org/v1 and v2beta1): a launcher that starts processes in workers.
//
// The launcher's mpirun finds its hosts in /etc/mpi/hostfile, and reaches them through
// /etc/mpi/kubexec.sh: `kubectl exec`, with an account that may do that in the job's own workers
// alone. So no image needs an SSH server and no job has keys; a worker that would be one waits.
// Names of workers resolve in all pods, for commands that read the hostfile themselves.
//
// - Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "jobs/job_kind.h"

namespace swell::controllers {

inline constexpr std::string_view kLauncher = "Launcher";

// The ConfigMap with hostfile and scripts; the launcher's account and what it may.
std::vector<json::Value> MpiDependents(const json::Value& job, const JobSpec& spec);
// Adds volumes, environment and the workers' command.
void PrepareMpiPod(const json::Value& job, const ReplicaSpec& replica, json::Value& pod);

}  // namespace swell::controllers
