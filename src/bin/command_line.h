// What the commands of this program share: parsing, errors, flags that several have.
// Thread-safety: main thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "client/kubeconfig.h"

namespace CLI {
class App;
}

namespace swell {

// Prints "swell: MESSAGE"; the exit status of a command that failed.
int FailCommand(const Status& status);
// nullopt: go on. Else the exit status: 0 after --help, 2 for misuse.
std::optional<int> ParseCommandLine(CLI::App& app, const std::vector<std::string>& arguments);

std::string Environment(const std::string& name);  // "" when not set

void AddLogLevel(CLI::App& app, std::string& level);
LogLevel LogLevelOf(const std::string& text);

void AddDataDir(CLI::App& app, std::string& data_dir);

// The Python SDK beside the program: in the source tree, or installed; "" when it is neither.
std::string FindSdk();

// Which cluster, for the commands that serve one that runs elsewhere.
struct RemoteFlags {
  std::string kubeconfig;
  std::string context;
};
void AddRemoteFlags(CLI::App& app, RemoteFlags& flags);
// --kubeconfig, $KUBECONFIG, this pod's service account, this machine's cluster, ~/.kube/config:
// the first that is there.
Result<client::ClusterAccess> FindCluster(const RemoteFlags& flags);

// The nodes of `swell up` and `swell agent`.
struct NodePlan {
  int nodes = 0;  // 0: one node, this machine as it is
  int gpus_per_node = 0;
  std::string cpus;  // of a virtual node; empty: the machine's
  std::string memory;
  std::string system_reserved;  // "cpu=80m,memory=500Mi"
  int control_plane_nodes = 0;
  std::string name;  // of the node; with several, what their names begin with
};
void AddNodeFlags(CLI::App& app, NodePlan& plan);

}  // namespace swell
