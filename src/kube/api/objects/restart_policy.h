// Restart policies: whether a container that has ended starts again in its pod. Nodes act on it,
// and the API server refuses reports that contradict it.
// - Threads: pure functions.
#pragma once

#include <cstdint>

#include "json/value.h"

namespace swell::api {

// `container`: of the pod's spec. Its own rules come first (KEP 5307), then its own policy, then
// the pod's. An init container other than a sidecar has the one of its pod.
bool RestartsAfter(const json::Value& pod, const json::Value& container, int64_t exit_code);
// Whether the end of one container may restart all of them, whatever their own policies are.
bool MayRestartTogether(const json::Value& pod);

}  // namespace swell::api
