// Flags that several commands share, and what they mean.
// - Threads: main thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "cli/command.h"
#include "kube/client/kubeconfig.h"
#include "sched/cycle/cycle.h"

namespace swell::ops {

// An error if a command that takes no words, or at most `most`, was given more.
Status CheckWords(const std::vector<std::string>& words, size_t most = 0);

std::string Environment(const std::string& name);  // "" when not set

void AddLogLevel(cli::Flags& flags, std::string& level);
LogLevel LogLevelOf(const std::string& text);

void AddDataDir(cli::Flags& flags, std::string& data_dir);

// --pod-cidr: the range of addresses of pods, which may be empty.
void AddPodCidrFlag(cli::Flags& flags, std::string& cidr);
Status CheckPodCidr(const std::string& cidr);

// Which controllers of kube-controller-manager run in an embedded cluster; see
// manager::ManagerOptions.
void AddControllersFlag(cli::Flags& flags, std::vector<std::string>& lists);
// The names of comma-separated lists; without a list `controllers` stays as it is. Misuse names the
// first that is not known.
Status ReadControllers(const std::vector<std::string>& lists,
                       std::vector<std::string>& controllers);

// Misuse unless the flag's value is an address to listen at. `form` is what the flag takes:
// "HOST:PORT or off".
Status CheckHostPort(std::string_view flag,
                     const std::string& value,
                     std::string_view form,
                     std::string_view example);

// Settings of the scheduler, as `swell simulate --set` takes them.
void AddSettingsFlag(cli::Flags& flags, std::vector<std::string>& settings);
Status ReadSettings(const std::vector<std::string>& texts, sched::Settings& settings);
// How elastic TrainingJobs are scaled that do not say it, where no project does.
void AddAutoscalingDefaultFlag(cli::Flags& flags, std::string& mode);
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

}  // namespace swell::ops
