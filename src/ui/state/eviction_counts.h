// EvictionCounts: pods that the scheduler took, by the rule that it followed, since the pages'
// server has watched. A counter: who wants a rate takes its growth.
// - Threads: the pages' executor.
// - Invariants: at most kRulesMax rules; others count together.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "json/value.h"

namespace swell::ui {

class EvictionCounts {
 public:
  static constexpr size_t kRulesMax = 16;

  // A pod group as it was and as it is. `before` null: it was not there.
  void OnGroup(const json::Value* before, const json::Value& now);
  const std::map<std::string, int64_t>& by_rule() const { return by_rule_; }

 private:
  std::map<std::string, int64_t> by_rule_;
};

}  // namespace swell::ui
