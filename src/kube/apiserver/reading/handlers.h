// Handlers of requests that read: get, list, watch, and paths that are not resources (discovery,
// OpenAPI, health, metrics). Each answers its call, now or as a stream.
// - Threads: core executor only.
#pragma once

#include "kube/apiserver/core.h"

namespace swell::apiserver {

// Adds what discovery keeps.
void RegisterDiscovery(Core& core);

void HandleGet(Core& core, const CallPtr& call);
void HandleList(Core& core, const CallPtr& call);
void HandleWatch(Core& core, const CallPtr& call);
// False: there is no such path.
bool HandleNonResource(Core& core, const CallPtr& call);

}  // namespace swell::apiserver
