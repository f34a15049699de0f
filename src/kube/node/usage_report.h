// StatsSummary, ResourceMetrics: what a node's pods use, as kubelets report it.
//
// A node's usage is the sum of its pods': several nodes may be one machine.
//
// - Threads: pure functions over the agent; core executor only.
#pragma once

#include <string>
#include <vector>

#include "json/value.h"
#include "kube/node/node_agent.h"
#include "kube/node/runtime/runtime.h"

namespace swell::node {

// Kubelet's /stats/summary. Processor use is over the seconds of `usageWindowSeconds`, a
// field that kubelets do not have.
json::Value StatsSummary(const NodeAgent& agent,
                         const std::vector<ContainerUsage>& usage,
                         WallTime now);
// Kubelet's /metrics/resource.
std::string ResourceMetrics(const NodeAgent& agent,
                            const std::vector<ContainerUsage>& usage,
                            WallTime now);

}  // namespace swell::node
