// The file system that a container sees: the host's, read through an overlay whose upper layer is
// the container's own, with private /proc, /dev, /tmp and /run, volumes at their mount paths, and
// the data directory hidden. The root of an image is image_root.h's instead of the host's. Nothing
// that a container writes reaches the host but through volumes.
//
// Called in the container's first process, which has mount and process id namespaces of its own.
//
// - Threads: the calling process has one thread.
#pragma once

#include <string>

#include "base/result.h"
#include "kube/process/shim/shim_spec.h"

namespace swell::process {

// Builds it and makes it the process's root. `dir` is the container's directory on the host.
// `user_namespace` is the pod's, or -1.
Status EnterContainerRoot(const ShimSpec& spec, const std::string& dir, int user_namespace);

}  // namespace swell::process
