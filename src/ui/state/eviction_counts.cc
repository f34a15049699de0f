#include "ui/state/eviction_counts.h"

#include <optional>

#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/pod_group.h"

namespace swell::ui {
namespace {

constexpr char kOthers[] = "(others)";

// What says no time was taken at some time before anybody watched.
bool IsSince(std::optional<WallTime> taken, WallTime since) {
  return since == WallTime() || (taken && *taken >= since);
}

}  // namespace

void EvictionCounts::Restore(const std::string& rule, int64_t pods) {
  if (pods > 0) PodsOf(rule) += pods;
}

void EvictionCounts::OnPod(const json::Value& pod, WallTime since) {
  const std::string_view rule = api::Annotation(pod, api::keys::kPreemptedRule);
  if (rule.empty()) return;
  const auto target = api::FindCondition(pod, api::kDisruptionTarget);
  Count(api::Uid(pod), rule, IsSince(target ? target->Since() : std::nullopt, since));
}

void EvictionCounts::OnGroup(const json::Value& group, WallTime since) {
  for (const api::EvictionRecord& record : api::EvictionRecords(group)) {
    const bool counts = IsSince(api::ParseTime(record.time), since);
    for (std::string_view pod : record.pods) Count(pod, record.rule, counts);
  }
}

void EvictionCounts::Count(std::string_view pod_uid, std::string_view rule, bool counts) {
  if (!seen_.emplace(pod_uid).second) return;
  order_.emplace_back(pod_uid);
  if (order_.size() > kPodsMax) {
    seen_.erase(order_.front());
    order_.pop_front();
  }
  if (counts) ++PodsOf(rule);
}

int64_t& EvictionCounts::PodsOf(std::string_view rule) {
  std::string name(rule);
  if (by_rule_.size() >= kRulesMax && !by_rule_.contains(name)) name = kOthers;
  return by_rule_[name];
}

}  // namespace swell::ui
