// CdiEdits: what the machine's files of the Container Device Interface say must be done to a
// container that is given some of its devices: variables, nodes, mounts and programs to run.
// - Threads: pure functions over the file system; blocking.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "kube/process/shim/shim_spec.h"

namespace swell::process {

struct CdiEdits {
  std::vector<std::pair<std::string, std::string>> env;
  std::vector<std::pair<std::string, std::string>> nodes;  // path on the host, in the container
  std::vector<ShimMount> mounts;
  std::vector<ShimHook> hooks;
  std::vector<int64_t> groups;
};

// Where the files are; of two that describe a device, the one in the later directory counts.
std::vector<std::string> CdiDirs();

// The edits for devices of a kind ("nvidia.com/gpu") by their names; nullopt where no file is about
// that kind. kForbidden: a device is in none of them, or a file asks for what is not supported.
Result<std::optional<CdiEdits>> ReadCdiEdits(const std::vector<std::string>& dirs,
                                             std::string_view kind,
                                             const std::vector<std::string>& devices);

}  // namespace swell::process
