// ListenAtLastPort: keeps the port of a cluster over restarts, so that kubeconfigs stay valid.
// - Threads: main thread, before the cluster runs.
#pragma once

#include <cstdint>
#include <functional>

#include "base/random.h"
#include "base/result.h"
#include "ops/data_dir.h"

namespace swell {

// Opens a socket at a port; 0 lets the kernel choose. Returns the port.
using ListenAt = std::function<Result<uint16_t>(uint16_t port)>;

// Tries the port of the last run, then random ports below those that the kernel hands out: another
// program's connection cannot take such a port while the cluster is stopped. At last the kernel
// chooses. Does not write the port down.
Result<uint16_t> ListenAtLastPort(const DataDir& dir, Random& random, const ListenAt& listen);

}  // namespace swell
