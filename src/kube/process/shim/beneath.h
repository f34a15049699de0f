// Paths that must stay below a directory into which others may have put links: what a volume's
// subPath names, what a pod reports.
// - Threads: pure functions over the file system. Needs Linux 5.6.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace swell::process {

// A path through /proc to this open file. It leads to the file also after the file is renamed.
std::string DescriptorPath(const UniqueFd& file);

enum class MissingDirs { kAreMade, kAreAnError };
// Opens dir/relative (O_PATH), following links only as long as they stay in `dir`. kInvalid when
// the path leads out of it. Directories that it makes belong to `owner`.
Result<UniqueFd> OpenBeneath(const std::string& dir,
                             const std::string& relative,
                             MissingDirs missing = MissingDirs::kAreMade,
                             int64_t owner = 0);

// The same below a directory that is open.
Result<UniqueFd> OpenBeneath(const UniqueFd& dir,
                             const std::string& relative,
                             MissingDirs missing = MissingDirs::kAreMade,
                             int64_t owner = 0);

// Opens root/path (O_PATH) as if `root` were the root: absolute links lead to places in it. `path`
// is absolute.
Result<UniqueFd> OpenInRoot(const std::string& root, const std::string& path);

// What stands in dir/name, a directory that others can write: kInvalid for anything but a plain
// file. A link would show them files of others, and a pipe would keep its reader waiting.
Result<std::string> ReadPlainFile(const std::string& dir, const std::string& name, size_t limit);

}  // namespace swell::process
