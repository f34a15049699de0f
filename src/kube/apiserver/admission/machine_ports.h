// The ports of the machine that a service may choose by itself: those of a load balancer. A Run:ai
// workload, and a Cron of one, chooses them for its service.
// - Threads: core executor only.
#pragma once

#include <cstdint>

#include "kube/apiserver/core.h"

namespace swell::apiserver {

// The range of node ports.
inline constexpr int64_t kFirstNodePort = 30000;
inline constexpr int64_t kNodePorts = 2768;

// Users who may not exceed the Pod Security level get no ports below 1024, which clients trust to
// be the machine's own, and no node ports, which the server gives to others. An object keeps the
// ports that it has. `old`: null for a new object. Host ports are refused by the level itself.
Status CheckMachinePorts(const Admission& admission,
                         const json::Value& object,
                         const json::Value* old);

}  // namespace swell::apiserver
