// ObjectCounts: how many objects of each kind each namespace has, how large all of them are, and
// what a project's may have.
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
// As spec.maxObjectsMib. 20,000 pods, each with its job and its PodGroup, have some 220 MiB.
inline constexpr int64_t kObjectsMibMax = 512;

// Adds what the server keeps about it, and counts what is stored.
void RegisterObjectCounts(Core& core);

// `pods "x" is forbidden: exceeded quota: …`
Status CheckObjectCount(const Admission& admission);
// The same for what people change: an object does not grow while the namespace holds all that it
// may. What the system itself changes is never refused, so that jobs continue.
Status CheckObjectGrowth(const Admission& admission,
                         const json::Value& object,
                         const store::Entry& old);
// The object is accepted: its write follows at once.
void CountObject(const Admission& admission);

}  // namespace swell::apiserver
