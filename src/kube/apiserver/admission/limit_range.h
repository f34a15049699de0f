// LimitRanges: the defaults and limits that a namespace gives its pods and claims.
// - Threads: core executor only.
#pragma once

#include "kube/apiserver/core.h"

namespace swell::apiserver {

// Gives a new pod the defaults.
Status LimitPod(Admission& admission, json::Value& pod);
// Checks a pod that is new, or has other amounts than before.
Status CheckLimits(Admission& admission, const json::Value& pod);
Status LimitClaim(Admission& admission, const json::Value& claim);

}  // namespace swell::apiserver
