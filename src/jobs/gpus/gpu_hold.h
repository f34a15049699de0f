// GpuHold: binds a member to nodes with one type of GPU.
// - Threads: pure functions.
#pragma once

#include <string_view>

#include "json/value.h"

namespace swell::jobs {

// The pod is one of a job that is held to the type: it says so, and if it uses GPUs, goes to nodes
// of that type only, besides what it requires itself. Nothing changes where `type` is empty or no
// value of a label.
void HoldToGpuType(json::Value& pod, std::string_view type);

}  // namespace swell::jobs
