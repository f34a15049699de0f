// SimCaches: what the replicas believe of the cluster, held to what is durable.
//
// In calm, an informer that differs from the store at one check agrees with it at the next.
//
// - Threads: one thread.
// - Ownership: the cluster outlives it.
#pragma once

#include <set>
#include <string>

#include "sim/sim_cluster.h"

namespace swell::sim {

class SimCaches {
 public:
  static constexpr Duration kEvery = std::chrono::seconds(20);

  explicit SimCaches(SimCluster& cluster) : cluster_(cluster) {}

  // In calm; to be asked often, looks now and then.
  void Check();

 private:
  void Compare(size_t replica, std::set<std::string>& differences) const;

  SimCluster& cluster_;
  SteadyTime looked_;
  std::set<std::string> differed_;  // at the last look
};

}  // namespace swell::sim
