// VolcanoPlugins: what spec.plugins of Volcano's Job adds to its pods: their place in the job
// (env), the names of all (svc), keys to reach each other (ssh), and what PyTorch, TensorFlow and
// MPI read. As in Volcano, a framework's plugin brings svc, and mpi brings ssh.
// - Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "jobs/kinds/job_kind.h"

namespace swell::jobs {

Status CheckVolcanoPlugins(const json::Value& job);
// Environment, files and ports.
void ApplyVolcanoPlugins(const JobMember& member, const JobKindOptions& options, json::Value& pod);
// The ConfigMap with the names of hosts, and the Secret with SSH keys.
Result<std::vector<json::Value>> VolcanoPluginObjects(const json::Value& job,
                                                      const JobSpec& spec,
                                                      const JobKindOptions& options);

}  // namespace swell::jobs
