// The project that work is charged to, and whether that takes new work.
// - Threads: core executor only.
#pragma once

#include <string>

#include "kube/apiserver/core.h"

namespace swell::apiserver {

// The project whose namespace it is, found as the scheduler finds it: where several claim one
// namespace, the first by name of those with none below them. Null: it belongs to none.
json::SharedValue ProjectOfNamespace(const Core& core, const std::string& ns);

// The project that a pod is charged to: its namespace's; in a namespace of none, what its group or,
// without a group, the pod itself names. Null: none.
json::SharedValue ProjectOfPod(const Core& core, const json::Value& pod);

// Refuses new work while its project is being deleted, as that of a namespace is. What controllers
// make for work that is there passes.
Status CheckProjectTakesWork(const Admission& admission, const json::Value& object);

}  // namespace swell::apiserver
