// Bootstrap: creates what every cluster has from its start (namespaces, priority classes, roles,
// Swell's CRDs).
// - Threads: core executor only.
#pragma once

#include <functional>

#include "kube/apiserver/core.h"

namespace swell::apiserver {

// Calls `ready` once everything is durable, or with the first error.
void RunBootstrap(Core& core, std::function<void(const Status&)> ready);

}  // namespace swell::apiserver
