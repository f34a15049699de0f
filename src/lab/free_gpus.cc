#include "lab/free_gpus.h"

#include <algorithm>

#include "base/check.h"

namespace swell::lab {

FreeGpus::FreeGpus(const ClusterShape& shape, const Allocations& taken)
    : free_(shape.nodes, shape.gpus_per_node), total_(shape.gpus()) {
  for (const auto& [number, allocation] : taken) Take(allocation);
}

void FreeGpus::Take(const Allocation& allocation) {
  for (int node : allocation) {
    SWELL_CHECK(free_[node] > 0);
    --free_[node];
  }
  total_ -= static_cast<int>(allocation.size());
}

void FreeGpus::Give(const Allocation& allocation) {
  for (int node : allocation) ++free_[node];
  total_ += static_cast<int>(allocation.size());
}

Allocation FreeGpus::TakeFromFreest(int gpus) {
  SWELL_CHECK(gpus <= total_);
  Allocation taken;
  while (static_cast<int>(taken.size()) < gpus) {
    const auto freest = std::max_element(free_.begin(), free_.end());
    const int count = std::min(*freest, gpus - static_cast<int>(taken.size()));
    taken.insert(taken.end(), count, static_cast<int>(freest - free_.begin()));
    *freest -= count;
  }
  total_ -= gpus;
  return taken;
}

Allocation FreeGpus::TakeTightly(int gpus) {
  SWELL_CHECK(gpus <= total_);
  Allocation taken;
  while (static_cast<int>(taken.size()) < gpus) {
    const int missing = gpus - static_cast<int>(taken.size());
    int best = 0;
    for (int node = 1; node < static_cast<int>(free_.size()); ++node) {
      if (free_[node] == 0) continue;
      if (free_[best] == 0) {
        best = node;
        continue;
      }
      // The smallest that holds the rest, else the freest.
      const bool holds = free_[node] >= missing;
      const bool best_holds = free_[best] >= missing;
      const bool better =
          holds && best_holds ? free_[node] < free_[best] : free_[node] > free_[best];
      if (better) best = node;
    }
    const int count = std::min(free_[best], missing);
    taken.insert(taken.end(), count, best);
    free_[best] -= count;
  }
  total_ -= gpus;
  return taken;
}

Placement PlacementOf(const Allocation& allocation) {
  Placement placement;
  for (size_t i = 0; i < allocation.size(); ++i) {
    if (i == 0 || allocation[i] != allocation[i - 1]) {
      placement.push_back(1);
    } else {
      ++placement.back();
    }
  }
  return placement;
}

Placement TightPlacement(int gpus, int gpus_per_node) {
  Placement placement;
  for (; gpus > 0; gpus -= gpus_per_node) placement.push_back(std::min(gpus, gpus_per_node));
  return placement;
}

}  // namespace swell::lab
