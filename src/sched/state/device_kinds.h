// Kinds of devices: "devices of class gpu.swell.dev with at least 40 GiB". A pod may ask for
// devices of kinds, by number, beside or instead of GPUs that are all alike to it.
//
// To the model a kind is an extended resource whose name begins with kGpuKind or kDeviceKind. A
// node has as many as it has devices of that kind, and a label of NodeInfo of the same name lists
// their indices. One device may be of many kinds; the pod that gets it has it alone. A pod that
// asks for GPUs by kind asks for as many of nvidia.com/gpu, which makes them count as GPUs
// everywhere. Devices that are not GPUs have the highest indices.
//
// Devices can depend on each other through counters of their node: partitions of one GPU take from
// its memory; pods that share a device take from its capacity; devices of one pod that must differ
// in an attribute take from a counter of 1 for each value. A device can be given when it is free or
// shared, and its counters have enough left. Most nodes have no counters and pay nothing for them.
//
// Parts of GPUs are kinds of their own: the resource's name says what part of a GPU a project is
// charged with.
//
// - Threads: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sched/state/device_set.h"
#include "sched/state/types.h"

namespace swell::sched {

// No resource of Kubernetes has a blank in its name, and no label.
inline constexpr std::string_view kGpuKind = "GPUs of ";
inline constexpr std::string_view kDeviceKind = "devices of ";
inline constexpr std::string_view kGpuPartKind = "parts of GPUs of ";
// A label of NodeInfo alone: its GPUs are given by kind only, since nothing on the node serves
// nvidia.com/gpu.
inline constexpr std::string_view kGpusByKind = "GPUs by kind";
// Another: the node's counters, as DeviceCountersText writes them.
inline constexpr std::string_view kDeviceCounters = "device counters";

inline bool IsGpuKind(std::string_view resource) { return resource.starts_with(kGpuKind); }
inline bool IsDeviceKind(std::string_view resource) {
  return IsGpuKind(resource) || resource.starts_with(kDeviceKind) ||
         resource.starts_with(kGpuPartKind);
}
// GpuPartName: the resource of a kind whose devices are such parts of a GPU. GpuPartPpm: the part
// that a resource's name states.
std::string GpuPartName(std::string_view kind, int64_t ppm);
int64_t GpuPartPpm(std::string_view resource);

// What having a device takes: counters by index, and how much of each.
using CounterUses = std::vector<std::pair<int, int64_t>>;
using DeviceUses = std::map<int, CounterUses>;  // by device

// The value of a kind's label: its devices, and what each takes when it is given as one of the
// kind.
std::string DeviceKindText(const DeviceSet& devices, const DeviceUses& uses = {});
DeviceSet ReadDeviceKind(std::string_view text);

struct DeviceCounters {
  std::vector<int64_t> capacity;
  // Counters that are separate for each pod: what other pods hold does not count.
  std::vector<uint8_t> own;
  DeviceSet shared;  // devices that several pods can have
  // What a device takes, whatever kind it is given as. For a shared device, all that it has.
  DeviceUses of_device;
  std::map<int, DeviceUses> of_kind;  // by interned resource

  const DeviceUses* KindUses(int resource) const {
    const auto found = of_kind.find(resource);
    return found == of_kind.end() ? nullptr : &found->second;
  }
  // What the device takes in all when it is given as one of this kind; null: of no kind.
  CounterUses UsesOf(int device, const DeviceUses* kind) const;
};
// Without `of_kind`, which the labels of the kinds have.
std::string DeviceCountersText(const DeviceCounters& counters);
DeviceCounters ReadDeviceCounters(std::string_view text);
DeviceUses ReadKindUses(std::string_view text, const DeviceCounters& counters);

// So many devices of a set.
struct DeviceWants {
  DeviceSet of;
  int64_t count = 0;
  const DeviceUses* uses = nullptr;  // as of this kind
};
// Gives each want its devices out of `free`, no device twice, those of `first` before others.
// False: they are too few. `out` has one set for each want, and may be null.
bool ShareOut(const std::vector<DeviceWants>& wants,
              const DeviceSet& free,
              const DeviceSet& first,
              std::vector<DeviceSet>* out);
// The same when devices take from counters, which have `left`. A search that needs too many steps
// gives up.
bool ShareOut(const std::vector<DeviceWants>& wants,
              const DeviceSet& free,
              const DeviceSet& first,
              const DeviceCounters& counters,
              std::vector<int64_t> left,
              std::vector<DeviceSet>* out);
// Whether every counter has enough left.
bool CountersAllow(const CounterUses& uses, const std::vector<int64_t>& left);

}  // namespace swell::sched
