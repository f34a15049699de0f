// ProgramFiles: which files of this machine a Python, or a program of a Python environment, needs
// where homes are empty, as they are in containers.
// - Threads: pure functions over the file system.
#pragma once

#include <string>
#include <vector>

namespace swell::process {

struct ProgramFiles {
  std::vector<std::string> paths;  // none below /usr, which containers have
  std::string user_base;           // $PYTHONUSERBASE; empty: as it is
};

// `program` is an absolute path. Its links are kept: the Python of a virtual environment is a link
// to another Python, and finds its packages by its own path.
ProgramFiles FilesOf(const std::string& program);

// Without links; empty: it does not exist.
std::string Canonical(const std::string& path);

}  // namespace swell::process
