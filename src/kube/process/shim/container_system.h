// MountSystem: a container's /proc, /sys, /dev, /run and /tmp. They show the container itself and
// nothing of the host but the few devices that everybody may use and those that the pod was given.
// - Threads: the calling process has one thread.
#pragma once

#include <string>

#include "base/result.h"
#include "kube/process/shim/shim_spec.h"

namespace swell::process {

// The host's root in the container's, while it is built.
inline constexpr std::string_view kOldRoot = "/.swell-old";

// In the container's root. `dir` is the container's directory on the host.
Status MountSystem(const ShimSpec& spec, const std::string& dir);

// Settings of the kernel that the container's namespaces keep apart, before its root is entered.
Status SetSysctls(const ShimSpec& spec);

}  // namespace swell::process
