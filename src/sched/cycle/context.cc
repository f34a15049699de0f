#include "sched/cycle/context.h"

#include <algorithm>
#include <utility>

namespace swell::sched {

void BoundPods::Add(PodId pod, GroupId group, size_t decision) {
  pods_.emplace_back(pod, decision);
  if (groups_.empty() || groups_.back() != group) groups_.push_back(group);
  sorted_ = false;
}

void BoundPods::Sort() {
  if (sorted_) return;
  std::stable_sort(pods_.begin(), pods_.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::sort(groups_.begin(), groups_.end());
  sorted_ = true;
}

std::optional<size_t> BoundPods::Take(PodId pod) {
  if (pods_.empty()) return std::nullopt;
  Sort();
  auto after = std::upper_bound(pods_.begin(), pods_.end(), std::pair(pod, kTaken));
  if (after == pods_.begin()) return std::nullopt;
  auto& [bound, decision] = *std::prev(after);
  if (bound != pod || decision == kTaken) return std::nullopt;
  return std::exchange(decision, kTaken);
}

bool BoundPods::HasGroup(GroupId group) {
  Sort();
  return std::binary_search(groups_.begin(), groups_.end(), group);
}

}  // namespace swell::sched
