// FreeGpus: how policies put the GPUs of a job on nodes.
// - Threads: a plain value.
// - Invariants: no node below zero.
#pragma once

#include <map>
#include <vector>

#include "lab/policy.h"

namespace swell::lab {

class FreeGpus {
 public:
  // What these allocations leave free. A node that is away has nothing.
  FreeGpus(const ClusterShape& shape, const Allocations& taken);

  int total() const { return total_; }
  int total(int group) const;
  int on(int node) const { return free_[node]; }
  void Take(const Allocation& allocation);
  void Give(const Allocation& allocation);
  // From the node with most free GPUs, the first of equals, until there are enough: what the
  // simulator of Pollux does for Tiresias and Optimus. total() >= gpus.
  Allocation TakeFromFreest(int gpus);
  // Chooses as few nodes as possible, then those that have the least left over. The group must have
  // that many free.
  Allocation TakeTightly(int gpus, int group = 0);
  // Nodes with these free GPUs each, those with the least left over. Empty: there are not enough.
  Allocation TakeShape(const Placement& placement);

 private:
  // Its nodes are those from `begin` up to `end`.
  struct Range {
    int begin = 0, end = 0;
  };
  std::vector<Range> groups_;
  std::vector<int> free_;
  int total_ = 0;
};

// The GPUs of each run of equal nodes.
Placement PlacementOf(const Allocation& allocation);
// GPUs on as few nodes as can be.
Placement TightPlacement(int gpus, int gpus_per_node);

struct GroupSize {
  int group = 0;
  int gpus = 0;
};
// Puts the jobs of `sizes` on nodes. A job that keeps its group and size keeps its place. If
// another job would then need more nodes than necessary, the whole group is placed anew, the
// largest job first.
Allocations PlaceSizes(const ClusterShape& shape,
                       const std::map<int, GroupSize>& sizes,
                       const Allocations& now);

}  // namespace swell::lab
