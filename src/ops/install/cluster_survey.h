// What a Kubernetes cluster has and lacks, as `swell controller` asks before it begins.
// - Threads: main thread; runs the process' loop until the answers are there.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "kube/client/client.h"
#include "ops/remote_process.h"

namespace swell::ops {

// kNotFound names the definitions that the cluster lacks.
Status CheckInstalled(RemoteProcess& process);

// Resources that the scheduler uses where it can and this server does not serve: it is older, or
// they are switched off.
Result<std::vector<client::Resource>> FindMissing(RemoteProcess& process);

// The CustomResourceDefinition of that name.
using FindDefinition = std::function<Result<json::SharedValue>(const std::string& name)>;
FindDefinition DefinitionsOf(RemoteProcess& process);

// The kinds of Kubeflow and KubeDL that their own operators run here, KubeDL's Cron among them.
// `kubeflow`: "swell": none; "operator": all of Kubeflow; "auto": those whose definition is not
// Swell's.
Result<std::set<std::string>> FindOthersJobs(const FindDefinition& find,
                                             const std::string& kubeflow);

// What decides how Swell's controllers serve a cluster.
struct ClusterFacts {
  bool policy_v1 = true;  // false: the cluster has policy/v1beta1
  std::vector<client::Resource> missing;
  std::set<std::string> others_jobs;
};
Result<ClusterFacts> SurveyCluster(RemoteProcess& process, const std::string& kubeflow);

}  // namespace swell::ops
