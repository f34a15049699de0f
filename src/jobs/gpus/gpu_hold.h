// GpuHold: binds a member to nodes with one type of GPU.
// - Threads: pure functions.
#pragma once

#include <string_view>

#include "json/value.h"

namespace swell::jobs {

// Marks a pod of a job that is held to the type. If the pod uses GPUs, it then requires nodes of
// that type, besides its own requirements. Does nothing if `type` is empty or no value of a label.
void HoldToGpuType(json::Value& pod, std::string_view type);

}  // namespace swell::jobs
