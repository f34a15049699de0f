// Ports of the machine that a service takes by its own choice: those of a load balancer.
// - Threads: core executor only.
#pragma once

#include <cstdint>

#include "kube/apiserver/core.h"

namespace swell::apiserver {

// The range of node ports.
inline constexpr int64_t kFirstNodePort = 30000;
inline constexpr int64_t kNodePorts = 2768;

// Refuses to users who may not exceed the Pod Security level the ports below 1024, which clients
// trust to be the machine's own, and those that the server gives to others as node ports. What the
// service has already, it keeps. `old`: null for a new one. Host ports are the level's to refuse.
Status CheckMachinePorts(const Admission& admission,
                         const json::Value& object,
                         const json::Value* old);

}  // namespace swell::apiserver
