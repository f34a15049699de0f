// OffloadYaml: has large YAML bodies turned into JSON by another thread (Options::offload) before
// their call goes to its handler. YAML takes ten times as long to read as JSON.
// - Threads: core executor only.
#pragma once

#include <functional>

#include "kube/apiserver/core.h"

namespace swell::apiserver {

// False: the body may be read here. True: `then` runs on the core executor once it is JSON, unless
// the call fails or is given up before.
bool OffloadYaml(Core& core, const CallPtr& call, std::function<void(Core&)> then);

}  // namespace swell::apiserver
