// RunHook: runs a container's lifecycle hook, once.
// - Threads: core executor only.
#pragma once

#include <functional>

#include "base/result.h"
#include "json/value.h"
#include "kube/node/runtime/runtime.h"

namespace swell::node {

// `hook`: the container's field lifecycle.postStart or preStop, but one that sleeps, for which
// there is nothing to run. `done` runs once with why it failed, as the kubelet words it.
void RunHook(Runtime& runtime,
             const json::Value& container,
             const json::Value& hook,
             const ContainerRef& ref,
             Duration limit,
             std::function<void(Status)> done);

}  // namespace swell::node
