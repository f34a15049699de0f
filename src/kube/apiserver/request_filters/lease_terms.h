// Whether a write comes from a leader that still leads.
// - Threads: core executor only.
#pragma once

#include "kube/apiserver/call.h"
#include "kube/apiserver/core.h"

namespace swell::apiserver {

// kConflict when another has taken the Lease since, or it is gone. Writes are accepted in order,
// the Lease's among them: once its next holder is told that it leads, nothing of the last one
// comes.
Status CheckLeaseTerm(Core& core, const Call& call);

}  // namespace swell::apiserver
