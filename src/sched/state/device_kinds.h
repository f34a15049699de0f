// Kinds of devices: "devices of class gpu.swell.dev with at least 40 GiB". A pod may ask for
// devices of kinds, by number, beside or instead of GPUs that are all alike to it.
//
// To the model a kind is an extended resource whose name begins with kGpuKind or kDeviceKind. A
// node has as many as it has devices of that kind, and a label of NodeInfo of the same name lists
// their indices. One device may be of many kinds; the pod that gets it has it alone. A pod that
// asks for GPUs by kind asks for as many of nvidia.com/gpu, which makes them count as GPUs
// everywhere. Devices that are not GPUs have the highest indices.
//
// - Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sched/state/device_set.h"
#include "sched/state/types.h"

namespace swell::sched {

// No resource of Kubernetes has a blank in its name, and no label.
inline constexpr std::string_view kGpuKind = "GPUs of ";
inline constexpr std::string_view kDeviceKind = "devices of ";
// A label of NodeInfo alone: its GPUs are given by kind only, since nothing on the node serves
// nvidia.com/gpu.
inline constexpr std::string_view kGpusByKind = "GPUs by kind";

inline bool IsGpuKind(std::string_view resource) { return resource.starts_with(kGpuKind); }
inline bool IsDeviceKind(std::string_view resource) {
  return IsGpuKind(resource) || resource.starts_with(kDeviceKind);
}
// The label's value for these devices, and what it says.
std::string DeviceKindText(const DeviceSet& devices);
DeviceSet ReadDeviceKind(std::string_view text);

// So many devices of a set.
struct DeviceWants {
  DeviceSet of;
  int64_t count = 0;
};
// Gives each want its devices out of `free`, no device twice, those of `first` before others.
// False: they are too few. `out` has one set for each want, and may be null.
bool ShareOut(const std::vector<DeviceWants>& wants,
              const DeviceSet& free,
              const DeviceSet& first,
              std::vector<DeviceSet>* out);

}  // namespace swell::sched
