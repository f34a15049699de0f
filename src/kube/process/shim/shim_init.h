// The first process of a container: joins its namespaces, enters its root, starts the command and
// stays as its init until nothing of the container is left.
// - Threads: the calling process has one thread.
#pragma once

#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "kube/process/shim/shim_spec.h"

namespace swell::process {

struct InitPipes {
  int in = -1;  // the command's standard input; -1: /dev/null
  int out = -1;
  int err = -1;
  int terminal = -1;  // a socket to send the terminal's master over; -1: no terminal
  int error = -1;     // why the command could not be started, then closed
  int report = -1;    // the command's wait status, four bytes, once it has ended
  int mapped = -1;    // readable once the user namespace's ids are mapped; -1: no need
};

[[noreturn]] void RunInit(const ShimSpec& spec, const std::string& dir, const InitPipes& pipes);

// The files to join the container's control groups by. They must be opened while the host's files
// are still seen: a container's root hides them.
std::vector<UniqueFd> OpenCgroups(const ShimSpec& spec);
// Moves the calling process into them.
void JoinCgroups(const std::vector<UniqueFd>& files);
// Where the machine's memory is short, the kernel ends the container before what runs it. If swell
// has CAP_SYS_RESOURCE, as root mostly does, the container's root cannot take that back.
void SetOomScore(const ShimSpec& spec);

// Finds a command as execvp would, in the PATH of `env`. The error says what a user must read.
Result<std::string> FindExecutable(const std::string& command, const std::vector<std::string>& env);

// The exit code that shells and runtimes give to a command that could not be started: 127 when
// there is no such command, else 126.
int StartFailureCode(const Status& why);

// A command is to have no descriptors of this process but the standard streams.
void KeepStandardStreamsOnly();

// Replaces the process. Returns only when that failed, with the reason.
Status ExecCommand(const ShimSpec& spec,
                   const std::vector<std::string>& argv,
                   const std::string& filter);
// After JoinCgroups: the container's groups are the root of those that it sees.
void EnterCgroupNamespace(const ShimSpec& spec);

}  // namespace swell::process
