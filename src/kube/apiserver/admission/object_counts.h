// ObjectCounts: how many objects of each kind each namespace has, and what a project's may have.
//
// Counted in memory, so that a bound on pods costs no second write for each pod, as a ResourceQuota
// would. Events have bounds of their own (kinds/events).
//
// - Threads: core executor only.
#pragma once

#include "kube/apiserver/core.h"

namespace swell::apiserver {

// Where the project does not say it (spec.maxObjectsPerKind).
inline constexpr int64_t kObjectsPerKindMax = 20'000;

// Adds what the server keeps about it, and counts what is stored.
void RegisterObjectCounts(Core& core);

// `pods "x" is forbidden: exceeded quota: …`
Status CheckObjectCount(const Admission& admission);
// The object is accepted: its write follows at once.
void CountObject(const Admission& admission);

}  // namespace swell::apiserver
