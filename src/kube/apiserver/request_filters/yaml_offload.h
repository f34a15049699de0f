// Large YAML bodies, which take ten times as long to read as JSON: another thread makes JSON of
// them (Options::aside), before their call goes to its handler.
#pragma once

#include <functional>

#include "kube/apiserver/core.h"

namespace swell::apiserver {

// False: the body may be read here. True: `then` runs on the core executor once it is JSON, unless
// the call fails or is given up before.
bool ReadYamlAside(Core& core, const CallPtr& call, std::function<void(Core&)> then);

}  // namespace swell::apiserver
