// What the pages show of a node's health and of the health of each of its GPUs.
// - Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "ui/views/views.h"

namespace swell::ui {

struct GpuHealth {
  bool healthy = true;
  std::string reason;  // what a check said of it; may be empty
};
// In the order of the node's GPUs, of which there are `count`.
std::vector<GpuHealth> HealthOfGpus(const json::Value& node, size_t count);

// {"state", "text", "faults", "score", "suspectFrom", "failures"}. A user who may not see
// a pod learns only that one failed.
json::Object HealthOfNode(const json::Value& node, const ViewInput& input);

}  // namespace swell::ui
