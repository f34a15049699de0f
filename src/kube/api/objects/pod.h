// Pod: the facts of pods that several layers need, each read in one place.
// - Threads: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "json/value.h"

namespace swell::api {

// status.phase; Pending for a pod without a status.
std::string_view Phase(const json::Value& pod);
// Succeeded or Failed.
bool HasEnded(const json::Value& pod);
// spec.nodeName; empty for a pod that is not bound.
std::string_view NodeName(const json::Value& pod);
bool IsBound(const json::Value& pod);
// spec.schedulerName.
std::string_view SchedulerName(const json::Value& pod);
// status.nominatedNodeName: the node that the scheduler has promised to the pod; empty without one.
std::string_view NominatedNode(const json::Value& pod);
bool IsReady(const json::Value& pod);
// Neither ended nor being deleted.
bool IsActive(const json::Value& pod);
// Whether the pod has a sidecar (see IsSidecar in amounts.h) of that name.
bool HasSidecar(const json::Value& pod, std::string_view container_name);
// The restarts of all its containers, without its init containers.
int64_t RestartCount(const json::Value& pod);

}  // namespace swell::api
