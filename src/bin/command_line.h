// What the commands of this program share: parsing, errors, flags that several have.
// - Threads: main thread.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "cli/command.h"
#include "kube/client/kubeconfig.h"
#include "sched/cycle/cycle.h"

namespace swell {

// Prints "swell: MESSAGE"; the exit status of a command that failed.
int FailCommand(const Status& status);
// Sets what `flags` declare. nullopt: go on. Else the exit status: 0 after --help, 2 for misuse.
// `words`: what is no flag; null: there may be none.
std::optional<int> ParseCommandLine(const cli::Command& command,
                                    cli::Flags& flags,
                                    const std::vector<std::string>& arguments,
                                    std::vector<std::string>* words = nullptr);
// "swell up: MESSAGE" and where help is; the exit status of a command that was used wrongly.
int Misused(const cli::Command& command, const std::string& message);

std::string Environment(const std::string& name);  // "" when not set

void AddLogLevel(cli::Flags& flags, std::string& level);
LogLevel LogLevelOf(const std::string& text);

void AddDataDir(cli::Flags& flags, std::string& data_dir);

// Settings of the scheduler, as `swell simulate --set` takes them.
void AddSettingsFlag(cli::Flags& flags, std::vector<std::string>& settings);
Status ReadSettings(const std::vector<std::string>& texts, sched::Settings& settings);
// How much of the scheduler's last cycles is kept for `swell replay`.
void AddRecordFlag(cli::Flags& flags, int64_t& mib);

// The Python SDK beside the program: in the source tree, or installed; "" and a warning on stderr
// when it is neither.
std::string FindSdk();

// Which cluster, for the commands that serve one that runs elsewhere.
struct RemoteFlags {
  std::string kubeconfig;
  std::string context;
};
void AddRemoteFlags(cli::Flags& flags, RemoteFlags& to);
// --kubeconfig, $KUBECONFIG, this pod's service account, this machine's cluster, ~/.kube/config:
// the first that is there.
Result<client::ClusterAccess> FindCluster(const RemoteFlags& flags);

// The nodes of `swell up` and `swell agent`.
struct NodePlan {
  // One node: this machine as it is.
  static constexpr int64_t kThisMachine = std::numeric_limits<int64_t>::min();
  int64_t nodes = kThisMachine;
  int64_t gpus_per_node = 0;
  std::string cpus;  // of a virtual node; empty: the machine's
  std::string memory;
  std::string system_reserved;  // "cpu=80m,memory=500Mi"
  int64_t control_plane_nodes = 0;
  std::string name;  // of the node; with several, what their names begin with
};
void AddNodeFlags(cli::Flags& flags, NodePlan& plan);

}  // namespace swell
