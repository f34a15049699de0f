// Disk limits of a pod: sizeLimit of its emptyDirs, limits of ephemeral-storage.
//
// As with the kubelet they are looked at from time to time, and a pod that uses more is evicted:
// nothing holds a single write back.
// - Threads: pure functions.
#pragma once

#include <optional>
#include <string>

#include "json/value.h"
#include "kube/node/runtime/runtime.h"

namespace swell::node {

bool HasDiskLimits(const json::Value& pod);
// What the pod uses too much of, in the kubelet's words; nothing while it keeps its limits.
std::optional<std::string> BeyondDiskLimit(const json::Value& pod, const DiskUse& use);

}  // namespace swell::node
