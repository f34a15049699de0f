// Where the cluster is: --kubeconfig, $KUBECONFIG, the cluster running on this machine,
// ~/.kube/config, the service account of a pod; the first that is there.
// - Threads: pure functions over files and the environment.
#pragma once

#include <functional>
#include <string>

#include "cli/cli.h"
#include "kube/client/kubeconfig.h"

namespace swell::cli {

// The file, or several with colons between them, as $KUBECONFIG has them. kNotFound lists
// everything that was tried and says how to start a cluster.
Result<std::string> FindKubeconfig(const ClusterFlags& flags,
                                   const std::function<std::string(const std::string&)>& getenv);
// How to reach it; without any file, as the service account of the pod that this runs in. The file
// goes to `kubeconfig`.
Result<client::ClusterAccess> FindCluster(
    const ClusterFlags& flags,
    const std::function<std::string(const std::string&)>& getenv,
    std::string& kubeconfig);

// Whether a server of this version ("v1.37.2+swell") is an embedded one.
bool IsEmbedded(std::string_view server_version);

}  // namespace swell::cli
