// UnhealthyDevices: the GPUs of a node that nothing new may use. They count as full, and work that
// runs on them continues.
// - Threads: pure functions.
#pragma once

#include <string_view>

#include "base/strings.h"
#include "sched/state/device_set.h"
#include "sched/state/types.h"

namespace swell::sched {

// A label of NodeInfo alone, which lists their indices: "1,3". Allocatable is without them.
inline constexpr std::string_view kUnhealthyGpus = "swell.dev/unhealthy-gpus";

// The taint of nodes that are unhealthy as a whole.
inline constexpr std::string_view kUnhealthyTaint = "swell.dev/unhealthy";

inline DeviceSet UnhealthyDevices(const NodeInfo& node) {
  DeviceSet set;
  const auto label = node.labels.find(std::string(kUnhealthyGpus));
  if (label == node.labels.end()) return set;
  for (std::string_view part : Split(label->second, ',')) {
    const auto index = ParseInt(part);
    if (index && *index >= 0 && *index < kDevicesMax) set.Add(static_cast<int>(*index));
  }
  return set;
}

}  // namespace swell::sched
