#include "cli/slurm/capacity.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/strings.h"
#include "cli/slurm/batch_job.h"

namespace swell::cli::slurm {
namespace {

// What a node of the job needs.
struct Need {
  int64_t gpus, cpus, memory_mib;
};

// How many nodes of the job one machine holds.
int64_t HeldBy(const Capacity::Node& node, const Need& need) {
  int64_t held = std::numeric_limits<int32_t>::max();
  for (const auto& [has, wants] : {std::pair(node.gpus, need.gpus),
                                   {node.cpus, need.cpus},
                                   {node.memory_mib, need.memory_mib}}) {
    if (wants > 0) held = std::min(held, has / wants);
  }
  return held;
}

std::string NeedText(const Need& need) {
  std::vector<std::string> parts;
  if (need.gpus > 0) parts.push_back(need.gpus == 1 ? "1 GPU" : StrCat(need.gpus, " GPUs"));
  if (need.cpus > 0) parts.push_back(need.cpus == 1 ? "1 CPU" : StrCat(need.cpus, " CPUs"));
  if (need.memory_mib > 0) parts.push_back(StrCat(need.memory_mib, " MiB of memory"));
  return Join(parts, ", ");
}

int64_t Most(const std::vector<Capacity::Node>& nodes, int64_t Capacity::Node::*field) {
  int64_t most = 0;
  for (const Capacity::Node& node : nodes) most = std::max(most, node.*field);
  return most;
}

}  // namespace

int64_t Capacity::gpus_most() const { return Most(nodes, &Node::gpus); }
int64_t Capacity::cpus_most() const { return Most(nodes, &Node::cpus); }

Capacity CapacityOf(const std::vector<NodeView>& nodes) {
  Capacity capacity;
  for (const NodeView& node : nodes) {
    capacity.nodes.push_back({node.gpus(), node.total.milli_cpu / 1000, node.total.memory >> 20});
  }
  return capacity;
}

Status CheckFits(const Layout& layout, const Capacity& capacity) {
  if (capacity.nodes.empty()) return Status::Ok();
  const Need need{layout.gpus_per_node, layout.cpus_requested(layout.gpus_per_node),
                  layout.memory_mib};
  int64_t held = 0;
  for (const Capacity::Node& node : capacity.nodes) held += HeldBy(node, need);
  const bool first_fits = layout.gpus_first <= std::max(layout.gpus_per_node, capacity.gpus_most());
  if (held >= layout.nodes && first_fits) return Status::Ok();
  const Capacity::Node most{capacity.gpus_most(), capacity.cpus_most(),
                            Most(capacity.nodes, &Capacity::Node::memory_mib)};
  const std::string each =
      NeedText({std::max(need.gpus, layout.gpus_first), need.cpus, need.memory_mib});
  if (held > 0 && first_fits) {
    return Status(Code::kConflict,
                  StrCat("Requested node configuration is not available: the job needs ",
                         layout.nodes, " nodes with ", each, " each, and there is room for ", held,
                         " when nothing else runs"));
  }
  return Status(
      Code::kConflict,
      StrCat("Requested node configuration is not available: a node of the job needs ", each,
             ", and the largest node has ", NeedText({most.gpus, most.cpus, most.memory_mib})));
}

}  // namespace swell::cli::slurm
