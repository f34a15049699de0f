// Partitions: node pools as Slurm's commands show them, and the states of their nodes.
// - Threads: values; functions that ask the server block on its loop.
// - Ownership: partitions refer to the nodes that they were made of.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/session.h"
#include "cli/views/node_view.h"

namespace swell::cli::slurm {

struct Partition {
  std::string name;
  bool usual = false;  // where jobs go that name no partition
  std::vector<const NodeView*> nodes;
};
// ReadShownNodes, with what a job's own account is told that may not read them.
Result<std::vector<NodeView>> ReadNodesToShow(Session& session,
                                              Api& api,
                                              const std::vector<std::string>& names = {});
// kNotFound naming what is not a partition.
Status CheckPartitions(std::string_view flag,
                       const std::string& list,
                       const std::vector<Partition>& partitions);
// The node pools by name, then "all", which stands for leaving --partition out.
Result<std::vector<Partition>> ReadPartitions(Api& api, const std::vector<NodeView>& nodes);

struct NodeState {
  std::string_view code;  // "mix"
  std::string_view word;  // "mixed"
  bool usable = true;
};
NodeState StateOf(const NodeView& node);
// Why it is not usable: the fault's text; "none" for one that is.
std::string ReasonOf(const NodeView& node);
// "gpu:8", "gpu:NVIDIA-A100:8", "(null)".
std::string GresOf(const NodeView& node);
// The same of those that pods hold.
std::string GresUsedOf(const NodeView& node);

}  // namespace swell::cli::slurm
