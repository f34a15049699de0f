// Files, the few operations we need, with errors that name the path.
// - Threads: pure functions over the file system.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace swell {

// A regular file, or a pipe that is open already; kBadRequest for what may have no end.
Result<UniqueFd> OpenToRead(const std::string& path);
Result<std::string> ReadFile(const std::string& path, size_t limit_bytes = 256 << 20);
// Replaces the file whole or not at all: temporary file, fsync, rename, fsync of the directory.
Status WriteFileAtomically(const std::string& path, std::string_view bytes, int mode = 0644);
// The same for a file that a person names: a link keeps leading where it leads, and a
// pipe or a device is written to.
Status WriteThrough(const std::string& path, std::string_view bytes);
Status MakeDirs(const std::string& path, int mode = 0755);
// Removes a file or a tree; does not follow symbolic links. Missing is fine.
Status RemoveTree(const std::string& path);
bool FileExists(const std::string& path);
Result<std::vector<std::string>> ListDir(const std::string& path);  // names, sorted
// Writes everything to a descriptor that blocks; `path` is for the error alone.
Status WriteAll(int fd, std::string_view bytes, const std::string& path);
// kNoSpace for ENOSPC and EDQUOT, kNotFound for ENOENT, kForbidden for EACCES/EPERM, else
// kInternal.
Status ErrnoStatus(int error, std::string_view what);

}  // namespace swell
