// Capacity: what the nodes of a partition have, to divide a job among them and to refuse one that
// no node can ever hold.
// - Threads: values and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/views/node_view.h"

namespace swell::cli::slurm {

struct Layout;

struct Capacity {
  struct Node {
    int64_t gpus = 0, cpus = 0, memory_mib = 0;
  };
  std::vector<Node> nodes;  // empty: unknown

  // What the largest node has; 0: unknown.
  int64_t gpus_most() const;
  int64_t cpus_most() const;
};
Capacity CapacityOf(const std::vector<NodeView>& nodes);
// Whether these nodes, empty, hold all of the job; a sentence that says what is too much. True
// where no node is known.
Status CheckFits(const Layout& layout, const Capacity& capacity);

}  // namespace swell::cli::slurm
