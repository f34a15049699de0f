// What nodes and pods use (metrics.k8s.io): asked of the nodes that are concerned whenever somebody
// wants to know, so that nothing is kept and nothing is old.
//
// A pod that its node says nothing about in time is left out, as a metrics server does.
//
// - Threads: core executor only.
#pragma once

#include <vector>

#include "kube/apiserver/core.h"
#include "kube/apiserver/reading/selection.h"

namespace swell::apiserver {

// The objects that the call is about, by namespace and name, or WaitingForCallout().
Result<std::vector<json::Object>> MeasuredUsage(Core& core, Call& call, const Selection& selection);

}  // namespace swell::apiserver
