// Exclusive claims: PersistentVolumeClaims that one pod uses at a time (ReadWriteOncePod), told to
// the scheduler as pods that keep away from each other in the whole cluster.
// - Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "sched/state/types.h"

namespace swell::sched {

// A topology key that no node label has: all nodes together are its one domain.
inline constexpr std::string_view kWholeCluster = "*";

// Pods of one namespace that use the claim. No label of a pod has such a key.
inline std::string ExclusiveClaimLabel(std::string_view claim) {
  return std::string("*claim/").append(claim);
}
inline PodAffinityTerm ExclusiveClaimTerm(std::string_view claim) {
  PodAffinityTerm term;
  term.selector.push_back({ExclusiveClaimLabel(claim), SelectorOp::kExists, {}});
  term.topology_key = kWholeCluster;
  return term;
}
// Once for each claim, however often the pod mounts it.
inline void UseAlone(std::string_view claim, PodInfo& pod) {
  if (!pod.labels.try_emplace(ExclusiveClaimLabel(claim)).second) return;
  pod.required_anti_affinity.push_back(ExclusiveClaimTerm(claim));
}

}  // namespace swell::sched
