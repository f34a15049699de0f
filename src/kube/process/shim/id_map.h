// User namespaces and mounts that translate owners. Root in a pod has no rights outside it. Files
// that a pod writes keep the owners on disk that they would have without a user namespace.
// - Threads: pure functions. MakeNamespaces starts a process that shares this one's memory and
//   does nothing.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace swell::process {

// Ids [inside, inside + count) of a namespace are [outside, …) of the machine.
struct IdRange {
  int64_t inside = 0;
  int64_t outside = 0;
  int64_t count = 0;
};
struct IdMap {
  std::vector<IdRange> users;
  std::vector<IdRange> groups;
};

// How many ids a pod has: 0 to 65,535.
inline constexpr int64_t kIdsOfPod = 65'536;
IdMap PodIdMap(int64_t first_outside);

struct Namespaces {
  UniqueFd user;
  UniqueFd net;  // invalid unless asked for
};
enum class NetworkNamespace { kNone, kMade };
// A user namespace and, if wanted, a network namespace that belongs to it.
Result<Namespaces> MakeNamespaces(const IdMap& map, NetworkNamespace network);

// A copy of the mount at `file` (and of what is mounted below it) whose owners are translated by a
// user namespace, not yet attached anywhere; kUnavailable where the file system cannot.
enum class MountAccess { kReadOnly, kReadWrite };
Result<UniqueFd> CloneMapped(int file, int user_namespace, MountAccess access);
// Whether the file system at `path` can, whatever is mounted below.
Status CheckMappable(const std::string& path, int user_namespace);
// Attaches what CloneMapped gave.
Status AttachMount(const UniqueFd& mount, const std::string& target);

}  // namespace swell::process
