// What the limits of projects leave a pod that is placed and asks for more.
// - Threads: core executor only.
#pragma once

#include "kube/apiserver/core.h"

namespace swell::apiserver {

// Refuses a resize that takes the pod's project, or one above it, over its limit of CPU or memory.
// What projects hold is what the scheduler said last, within the last second or so. A pod that
// waits is asked by the scheduler when it is placed.
Status CheckProjectLimits(const Admission& admission,
                          const json::Value& pod,
                          const json::Value& old);

}  // namespace swell::apiserver
