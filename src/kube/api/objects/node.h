// Node: the facts of nodes that several layers need, each read in one place.
// - Threads: pure functions.
// - Ownership: texts are the node's own, valid while it lives.
#pragma once

#include <string_view>
#include <vector>

#include "json/value.h"

namespace swell::api {

// spec.unschedulable: the node is cordoned.
bool IsUnschedulable(const json::Value& node);

// One of spec.taints.
struct Taint {
  std::string_view key, value, effect, time_added;

  // Whether a pod that does not tolerate it stays away.
  bool Repels() const { return effect == "NoSchedule" || effect == "NoExecute"; }
};
std::vector<Taint> TaintsOf(const json::Value& node);
// Whether one of a pod's spec.tolerations bears the taint. The scheduler has the rule in types of
// its own (sched/state/shape.h).
bool Tolerates(const json::Value& toleration, const Taint& taint);

// One of status.addresses.
struct NodeAddress {
  std::string_view type, address;
};
std::vector<NodeAddress> Addresses(const json::Value& node);
// Its address of the type InternalIP; empty without one.
std::string_view InternalIp(const json::Value& node);

// The memory of each of its GPUs in MiB, from GPU feature discovery's label; 0 where it says
// nothing.
int64_t GpuMemoryMib(const json::Value& node);

}  // namespace swell::api
