// Handlers of requests that write. Each answers its call once the write is durable.
// - Threads: core executor only.
#pragma once

#include "kube/apiserver/core.h"

namespace swell::apiserver {

void HandleCreate(Core& core, const CallPtr& call);
void HandleUpdate(Core& core, const CallPtr& call);
void HandlePatch(Core& core, const CallPtr& call);
void HandleDelete(Core& core, const CallPtr& call);
void HandleDeleteCollection(Core& core, const CallPtr& call);
void HandleScale(Core& core, const CallPtr& call);

}  // namespace swell::apiserver
