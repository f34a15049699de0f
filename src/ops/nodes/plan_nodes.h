// PlanNodes: the nodes that `swell up` and `swell agent` run.
// - Threads: main thread; reads facts about this machine.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/flags.h"
#include "kube/node/spec/node_config.h"

namespace swell::ops {

struct NodePlan {
  // One node: this machine as it is.
  static constexpr int64_t kThisMachine = std::numeric_limits<int64_t>::min();
  int64_t nodes = kThisMachine;
  int64_t gpus_per_node = 0;
  std::string cpus;  // of a virtual node; empty: the machine's
  std::string memory;
  std::string system_reserved;  // "cpu=80m,memory=500Mi"
  int64_t control_plane_nodes = 0;
  std::string disk = "/";  // a path of the file system that pods write to
  std::string name;        // of the node; with several, what their names begin with
};
void AddNodeFlags(cli::Flags& flags, NodePlan& plan);

// The planned nodes, control plane first.
Result<std::vector<node::NodeConfig>> PlanNodes(const NodePlan& plan);

// The nodes of a large fleet renew their leases less often, which keeps the load low. A node counts
// as lost after 40 s.
void SlowLeases(std::vector<node::NodeConfig>& fleet);

}  // namespace swell::ops
