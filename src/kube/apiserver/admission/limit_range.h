// LimitRanges: the defaults and limits that a namespace gives its pods and claims.
// - Threads: core executor only.
#pragma once

#include "kube/apiserver/core.h"

namespace swell::apiserver {

Status LimitPod(Admission& admission, json::Value& pod);
Status LimitClaim(Admission& admission, const json::Value& claim);

}  // namespace swell::apiserver
