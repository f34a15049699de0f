// EvictionCounts: pods that the scheduler took, by the rule that it followed, since the pages'
// server has watched. These are counters: their growth in some time says how many were taken in it.
// - Threads: the pages' executor.
// - Invariants: at most kRulesMax rules, and others count together; a pod counts once, of the
// newest
//   kPodsMax.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "json/value.h"

namespace swell::ui {

class EvictionCounts {
 public:
  static constexpr size_t kRulesMax = 16;
  static constexpr size_t kPodsMax = 20'000;

  // A pod or a pod group as it is: either may say that a pod was taken. `before_us`: that was
  // before anybody watched, so it does not count.
  void OnPod(const json::Value& pod, bool before_us);
  void OnGroup(const json::Value& group, bool before_us);
  const std::map<std::string, int64_t>& by_rule() const { return by_rule_; }

 private:
  void Count(std::string_view pod_uid, std::string_view rule, bool before_us);

  std::map<std::string, int64_t> by_rule_;
  std::set<std::string, std::less<>> seen_;  // pods, by uid
  std::deque<std::string> order_;            // of `seen_`
};

}  // namespace swell::ui
