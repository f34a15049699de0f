// FreeGpus: how policies put the GPUs of a job on nodes.
// - Threads: a plain value.
// - Invariants: no node below zero.
#pragma once

#include <vector>

#include "lab/policy.h"

namespace swell::lab {

class FreeGpus {
 public:
  // What these allocations leave free.
  FreeGpus(const ClusterShape& shape, const Allocations& taken);

  int total() const { return total_; }
  int on(int node) const { return free_[node]; }
  void Take(const Allocation& allocation);
  void Give(const Allocation& allocation);
  // From the node with most free GPUs, the first of equals, until there are enough: what the
  // simulator of Pollux does for Tiresias and Optimus. total() >= gpus.
  Allocation TakeFromFreest(int gpus);
  // On as few nodes as can be, and where they leave least behind. total() >= gpus.
  Allocation TakeTightly(int gpus);

 private:
  std::vector<int> free_;
  int total_ = 0;
};

// The GPUs of each run of equal nodes.
Placement PlacementOf(const Allocation& allocation);
// GPUs on as few nodes as can be.
Placement TightPlacement(int gpus, int gpus_per_node);

}  // namespace swell::lab
