// What a container's processes may do: user namespace, groups, capabilities, system calls. Each
// step that is impossible is an error; nothing that was asked for is left out in silence.
//
// - Threads: the calling process has one thread.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "kube/process/shim/shim_spec.h"

namespace swell::process {

// What is opened while the host's files are still seen.
struct ConfineFiles {
  UniqueFd user_namespace;  // invalid where the container has none of the pod's
  std::string filter;       // of system calls, the program of a sock_fprog; empty: none
};
Result<ConfineFiles> OpenConfineFiles(const ShimSpec& spec);

// Enters it as its root, which is nobody outside.
Status EnterUserNamespace(const UniqueFd& user_namespace);

// For a container's first process, once its root stands: it signals and reaps from here on.
void KeepOnlyKill();

// Gives up what the container is not to have and becomes its user; what follows is execve.
Status Confine(const ShimSpec& spec, const std::string& filter);

}  // namespace swell::process
