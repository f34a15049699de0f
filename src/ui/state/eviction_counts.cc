#include "ui/state/eviction_counts.h"

#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod_group.h"

namespace swell::ui {
namespace {

constexpr char kOthers[] = "(others)";

}  // namespace

void EvictionCounts::OnPod(const json::Value& pod, bool before_us) {
  const std::string_view rule = api::Annotation(pod, api::keys::kPreemptedRule);
  if (!rule.empty()) Count(api::Uid(pod), rule, before_us);
}

void EvictionCounts::OnGroup(const json::Value& group, bool before_us) {
  for (const api::EvictionRecord& record : api::EvictionRecords(group)) {
    for (std::string_view pod : record.pods) Count(pod, record.rule, before_us);
  }
}

void EvictionCounts::Count(std::string_view pod_uid, std::string_view rule, bool before_us) {
  if (!seen_.emplace(pod_uid).second) return;
  order_.emplace_back(pod_uid);
  if (order_.size() > kPodsMax) {
    seen_.erase(order_.front());
    order_.pop_front();
  }
  if (before_us) return;
  std::string name(rule);
  if (by_rule_.size() >= kRulesMax && !by_rule_.contains(name)) name = kOthers;
  ++by_rule_[name];
}

}  // namespace swell::ui
