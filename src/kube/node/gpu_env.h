// AddGpuEnv: the environment that shows a container its pod's GPUs.
// - Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"
#include "kube/node/node_config.h"
#include "kube/node/pod_spec.h"

namespace swell::node {

// `devices` are the ids of the pod's devices; `device_mib` is the memory of each, 0 if unknown.
// Containers get their part of the devices in the order of the spec. In a pod that shares a GPU
// every container sees it, and is told how much of it to use. Returns the devices that it sees.
std::vector<std::string> AddGpuEnv(const json::Value& pod,
                                   std::string_view container,
                                   const std::vector<std::string>& devices,
                                   int64_t device_mib,
                                   EnvList& env);

// What a container is told of its GPUs where the node has virtual ones: a name, and the memory of
// each. Without the label that says it, the GPUs divide the memory of the node.
void AddVirtualGpuEnv(const NodeConfig& node, const Amounts& allocatable, EnvList& env);

}  // namespace swell::node
