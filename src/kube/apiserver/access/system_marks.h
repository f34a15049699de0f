// System marks: fields of people's work that the system writes and trusts. Others' values are
// dropped with a warning, or refused where the work would not be what they asked for.
// - Threads: core executor only.
#pragma once

#include "base/result.h"
#include "kube/apiserver/core.h"

namespace swell::apiserver {

// Drops annotations of a pod, a job or a template that only the system writes; of an update they
// stay as they were. `old` is null for a new object.
void KeepSystemMarks(const Admission& admission, json::Value& object, const json::Value* old);

// Refuses a node that is not the scheduler's choice: `spec.nodeName` is for those that may bind
// pods.
Status CheckNodeName(const Admission& admission, const json::Value& object, const json::Value* old);

}  // namespace swell::apiserver
