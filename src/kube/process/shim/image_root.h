// The root of a container that runs an image: an overlay of the image's layers below a layer of the
// container's own. Nothing of the host is in it but what is mounted.
//
// Called in the container's first process, as container_root.h says. What an image holds may be
// made to deceive: a link where a directory is expected is refused, not followed.
//
// - Threads: the calling process has one thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/process/shim/shim_spec.h"

namespace swell::process {

// Mounts the layers of spec.image_layers at `root`. `dir` is the container's directory. The owners
// of their files are translated by the pod's user namespace, where it has one.
Status MountImageRoot(const ShimSpec& spec,
                      const std::string& dir,
                      const std::string& root,
                      int user_namespace);
// Makes the directories that every container has mounts on, once the root is the image's; new ones
// belong to `owner`.
Status MakeSystemDirs(int64_t owner);

}  // namespace swell::process
