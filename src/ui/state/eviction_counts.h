// EvictionCounts: pods that the scheduler took, by the rule that it followed. These are counters:
// their growth in some time says how many were taken in it. They outlive the process in the
// history.
// - Threads: the pages' executor.
// - Invariants: at most kRulesMax rules, and others count together; a pod counts once, of the
//   newest kPodsMax.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "json/value.h"

namespace swell::ui {

class EvictionCounts {
 public:
  static constexpr size_t kRulesMax = 16;
  static constexpr size_t kPodsMax = 20'000;

  // What an earlier process had counted; before the first pod.
  void Restore(const std::string& rule, int64_t pods);
  // A pod or a pod group as it is: either may say that a pod was taken. What was taken before
  // `since` does not count: an earlier process counted it, or nobody watched.
  void OnPod(const json::Value& pod, WallTime since);
  void OnGroup(const json::Value& group, WallTime since);
  const std::map<std::string, int64_t>& by_rule() const { return by_rule_; }

 private:
  void Count(std::string_view pod_uid, std::string_view rule, bool counts);
  int64_t& PodsOf(std::string_view rule);

  std::map<std::string, int64_t> by_rule_;
  std::set<std::string, std::less<>> seen_;  // pods, by uid
  std::deque<std::string> order_;            // of `seen_`
};

}  // namespace swell::ui
