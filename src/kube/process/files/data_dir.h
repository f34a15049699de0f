// The data directory of a runtime: where pods, images and logs are, and the tag by which what it
// makes outside of the directory (interfaces, groups, labels) is known as its own.
// - Threads: pure functions over the file system.
#pragma once

#include <string>

#include "base/result.h"

namespace swell::process {

// Makes the directory if it does not exist. Returns its path without links.
Result<std::string> PrepareDataDir(const std::string& path);
// Six characters that stand for the directory.
std::string TagOf(const std::string& data_dir);

}  // namespace swell::process
