// ListenAtLastPort: keeps the port of a cluster over restarts, so that kubeconfigs stay valid.
// - Threads: main thread, before the cluster runs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/random.h"
#include "base/result.h"

namespace swell::ops {

// Opens a socket at a port; 0 lets the kernel choose. Returns the port.
using ListenAt = std::function<Result<uint16_t>(uint16_t port)>;

// The port of the last run, as `file` has it; 0: there was none.
uint16_t LastPort(const std::string& file);

// `file` has the port of the last run. Tries it, then random ports below those that the kernel
// hands out: another program's connection cannot take such a port while the cluster is stopped. At
// last the kernel chooses. Does not write the port down.
Result<uint16_t> ListenAtLastPort(const std::string& file, Random& random, const ListenAt& listen);

// The same where others were told the port: when it is taken, they would not find the cluster at
// another, and a program that holds the old one could pose as it. Says who has it, and what to do.
Result<uint16_t> ListenAtRecordedPort(const std::string& file,
                                      Random& random,
                                      const ListenAt& listen);

}  // namespace swell::ops
