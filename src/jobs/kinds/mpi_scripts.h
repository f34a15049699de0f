// MpiScripts: what runs inside the pods of an MPIJob: the launcher's remote shell, the list of
// hosts for elastic Horovod, and how a worker without a command waits.
// - Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "json/value.h"

namespace swell::jobs {

inline constexpr std::string_view kMpiFolder = "/etc/mpi";
inline constexpr std::string_view kMpiHostfile = "hostfile";
inline constexpr std::string_view kMpiRemoteShell = "kubexec.sh";

// What mpirun calls in place of ssh or rsh. `container`: of the workers; empty: their first one.
// `keys`: the directory that has the job's SSH keys.
std::string RemoteShellScript(std::string_view job,
                              std::string_view container,
                              std::string_view keys);
// What prints the workers that run now, as HOST:SLOTS.
std::string DiscoverHostsScript(std::string_view job, int64_t slots);

// The SSH server of a worker whose template says nothing.
json::Array SshServer();
// Runs the SSH server that these words start, where the image has it; else waits.
json::Array ServeOrWait(const json::Array& server);

}  // namespace swell::jobs
