// Mounting in a container's root, and the directories to mount on.
// - Threads: pure functions over the calling process's mount namespace.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace swell::process {

// `type` is null for a bind mount, `data` the file system's options.
Status Mount(const std::string& source,
             const std::string& target,
             const char* type,
             unsigned long flags,
             const std::string& data = {});
// The whole tree read-only, keeping the flags that a user namespace may not clear.
Status MakeReadOnly(const std::string& target);
// A tmpfs that belongs to `owner`; `options` as the file system's, "mode=755,size=1m".
Status MountTmpfs(const std::string& target, const std::string& options, int64_t owner);

// As MakeDirs; those that were missing belong to `owner`.
Status MakeOwnedDirs(const std::string& path, int64_t owner, int mode = 0755);
// An empty file for a mount to cover. Not behind a link.
Status MakeOwnedFile(const std::string& path, int64_t owner);

// Whether `path` is `dir` or in it.
bool IsUnder(std::string_view path, std::string_view dir);

}  // namespace swell::process
