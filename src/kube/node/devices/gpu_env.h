// AddGpuEnv: the environment that shows a container its pod's GPUs.
// - Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"
#include "kube/node/spec/node_config.h"
#include "kube/node/spec/pod_spec.h"

namespace swell::node {

struct PodGpus {
  std::vector<std::string> devices;  // ids of those that the pod requests
  std::vector<std::string> claimed;  // of those that the container has by claims
  int64_t memory_mib = 0;            // of each; 0: unknown
};

// Containers get their part of the devices in the order of the spec, and all of their claims. In a
// pod that shares a GPU every container sees it, and is told how much of it to use. Returns the
// devices that the container sees.
std::vector<std::string> AddGpuEnv(const json::Value& pod,
                                   std::string_view container,
                                   const PodGpus& gpus,
                                   EnvList& env);

// What the GPUs of a node are. Without the label that says it, GPUs divide the node's memory.
struct GpuKind {
  std::string model;
  int64_t memory_mib = 0;  // of each
};
GpuKind GpuKindOf(const NodeConfig& node, const Amounts& allocatable, int64_t gpus);

// Adds variables for containers of a node with virtual GPUs: the GPUs' name, and the memory of
// each.
void AddVirtualGpuEnv(const NodeConfig& node, const Amounts& allocatable, EnvList& env);

}  // namespace swell::node
