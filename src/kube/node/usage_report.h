// What a node's pods use, in the forms that kubelets have for it: the summary for people and the
// API server, and the metrics that a metrics server scrapes.
//
// A node uses what its pods use: several nodes may be one machine.
//
// - Threads: pure functions over the agent; core executor only.
#pragma once

#include <string>
#include <vector>

#include "json/value.h"
#include "kube/node/node_agent.h"
#include "kube/node/runtime.h"

namespace swell::node {

// Kubelet's /stats/summary. Processor use is over the seconds of `usageWindowSeconds`, which
// kubelets do not tell.
json::Value StatsSummary(const NodeAgent& agent,
                         const std::vector<ContainerUsage>& usage,
                         WallTime now);
// Kubelet's /metrics/resource.
std::string ResourceMetrics(const NodeAgent& agent,
                            const std::vector<ContainerUsage>& usage,
                            WallTime now);

}  // namespace swell::node
