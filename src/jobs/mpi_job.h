// MpiJob: Kubeflow's MPIJob (kubeflow.org/v1 and v2beta1): a launcher starts processes in workers.
//
// The launcher's mpirun reads its hosts from /etc/mpi/hostfile and reaches them through
// /etc/mpi/kubexec.sh, which runs `kubectl exec` with an account that may do so in the job's own
// workers only. So images need no SSH server and jobs no keys; a worker whose command is an SSH
// server waits. The names of workers resolve in all pods.
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
