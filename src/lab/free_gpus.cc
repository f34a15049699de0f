#include "lab/free_gpus.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace swell::lab {

FreeGpus::FreeGpus(const ClusterShape& shape, const Allocations& taken) : total_(shape.gpus()) {
  for (const NodeGroup& group : shape.groups) {
    const int begin = static_cast<int>(free_.size());
    groups_.push_back({begin, begin + group.nodes});
    free_.insert(free_.end(), group.nodes, group.gpus_per_node);
  }
  for (int node : shape.away) free_[node] = 0;
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

int FreeGpus::total(int group) const {
  const Range& range = groups_[group];
  return std::accumulate(free_.begin() + range.begin, free_.begin() + range.end, 0);
}

Allocation FreeGpus::TakeTightly(int gpus, int group) {
  const Range& range = groups_[group];
  SWELL_CHECK(gpus <= total(group));
  Allocation taken;
  while (static_cast<int>(taken.size()) < gpus) {
    const int missing = gpus - static_cast<int>(taken.size());
    int best = range.begin;
    for (int node = best + 1; node < range.end; ++node) {
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

Allocation FreeGpus::TakeShape(const Placement& placement) {
  Allocation taken;
  for (int gpus : placement) {
    int best = -1;
    for (int node = 0; node < static_cast<int>(free_.size()); ++node) {
      const bool used = std::find(taken.begin(), taken.end(), node) != taken.end();
      if (used || free_[node] < gpus) continue;
      if (best < 0 || free_[node] < free_[best]) best = node;
    }
    if (best < 0) return {};
    taken.insert(taken.end(), gpus, best);
  }
  Take(taken);
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

namespace {

bool IsTight(const ClusterShape& shape, const Allocation& allocation, int group) {
  const Placement tight =
      TightPlacement(static_cast<int>(allocation.size()), shape.groups[group].gpus_per_node);
  return PlacementOf(allocation).size() <= tight.size();
}

// False if some job is on more nodes than it needs.
bool PlaceGroup(const ClusterShape& shape,
                const std::vector<std::pair<int, GroupSize>>& jobs,
                const Allocations& kept,
                Allocations& placed) {
  FreeGpus free(shape, kept);
  bool tight = true;
  for (const auto& [number, size] : jobs) {
    const auto found = kept.find(number);
    const Allocation& allocation = placed[number] =
        found == kept.end() ? free.TakeTightly(size.gpus, size.group) : found->second;
    tight &= IsTight(shape, allocation, size.group);
  }
  return tight;
}

}  // namespace

Allocations PlaceSizes(const ClusterShape& shape,
                       const std::map<int, GroupSize>& sizes,
                       const Allocations& now) {
  Allocations placed;
  for (int group = 0; group < static_cast<int>(shape.groups.size()); ++group) {
    std::vector<std::pair<int, GroupSize>> jobs;
    Allocations kept;
    for (const auto& [number, size] : sizes) {
      if (size.group != group || size.gpus == 0) continue;
      jobs.emplace_back(number, size);
      const auto held = now.find(number);
      if (held != now.end() && static_cast<int>(held->second.size()) == size.gpus &&
          shape.GroupOf(held->second.front()) == group) {
        kept.insert(*held);
      }
    }
    std::stable_sort(jobs.begin(), jobs.end(),
                     [](const auto& a, const auto& b) { return a.second.gpus > b.second.gpus; });
    if (!PlaceGroup(shape, jobs, kept, placed)) PlaceGroup(shape, jobs, {}, placed);
  }
  return placed;
}

Placement TightPlacement(int gpus, int gpus_per_node) {
  Placement placement;
  for (; gpus > 0; gpus -= gpus_per_node) placement.push_back(std::min(gpus, gpus_per_node));
  return placement;
}

}  // namespace swell::lab
