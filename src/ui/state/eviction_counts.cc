#include "ui/state/eviction_counts.h"

#include <set>
#include <string_view>

#include "kube/api/objects/pod_group.h"

namespace swell::ui {
namespace {

constexpr char kOthers[] = "(others)";

}  // namespace

// A record stays for as long as its pods do, so a pod is counted when it is first named.
void EvictionCounts::OnGroup(const json::Value* before, const json::Value& now) {
  std::set<std::string_view> known;
  if (before != nullptr) {
    for (const api::EvictionRecord& record : api::EvictionRecords(*before)) {
      known.insert(record.pods.begin(), record.pods.end());
    }
  }
  for (const api::EvictionRecord& record : api::EvictionRecords(now)) {
    for (std::string_view pod : record.pods) {
      if (!known.insert(pod).second) continue;
      std::string rule(record.rule);
      if (by_rule_.size() >= kRulesMax && !by_rule_.contains(rule)) rule = kOthers;
      ++by_rule_[rule];
    }
  }
}

}  // namespace swell::ui
