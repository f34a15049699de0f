#include "ui/state/pod_usage.h"

#include <algorithm>

#include "cli/views/job_view.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"
#include "kube/api/objects/amounts.h"

namespace swell::ui {
namespace {

double AmountOf(const json::Value& usage, std::string_view resource) {
  const json::Value* text = json::Find(usage, {resource});
  if (text == nullptr) return 0;
  const auto quantity = api::Quantity::FromJson(*text);
  return quantity.ok() ? static_cast<double>(quantity->MilliValue()) / 1000 : 0;
}

}  // namespace

void PodUsage::Measure(const json::Value& list) {
  pods_.clear();
  for (const json::Value& pod : api::Items(list)) {
    Use& use = pods_[api::KeyOf(pod)];
    for (const json::Value& container : json::GetArray(pod, {"containers"})) {
      const json::Value* usage = json::Find(container, {"usage"});
      if (usage == nullptr) continue;
      use.cores += AmountOf(*usage, "cpu");
      use.memory += AmountOf(*usage, "memory");
    }
  }
}

void PodUsage::NoteIdle(const std::map<std::string, json::SharedValue, std::less<>>& pods,
                        WallTime now) {
  std::map<std::string, WallTime, std::less<>> idle;
  for (const auto& [key, pod] : pods) {
    const auto part = GpuPart(*pod);
    if (!part || *part >= kIdlePart) continue;
    const std::string uid(api::Uid(*pod));
    const auto known = idle_since_.find(uid);
    idle[uid] = known == idle_since_.end() ? now : known->second;
  }
  idle_since_ = std::move(idle);
}

const PodUsage::Use* PodUsage::Find(const json::Value& pod) const {
  const auto found = pods_.find(api::KeyOf(pod));
  return found == pods_.end() ? nullptr : &found->second;
}

std::optional<double> PodUsage::GpuPart(const json::Value& pod) const {
  const Use* use = Find(pod);
  if (use == nullptr || cli::MilliGpus(pod) == 0) return std::nullopt;
  const api::Amounts requests = api::PodAmounts(api::Spec(pod), api::AmountField::kRequests);
  const auto cpu = requests.find("cpu");
  const double cores =
      cpu == requests.end() ? 1.0 : static_cast<double>(cpu->second.MilliValue()) / 1000;
  return std::clamp(use->cores / std::max(cores, 0.01), 0.0, 1.0);
}

std::optional<WallTime> PodUsage::IdleSince(const json::Value& pod) const {
  const auto found = idle_since_.find(api::Uid(pod));
  if (found == idle_since_.end()) return std::nullopt;
  return found->second;
}

}  // namespace swell::ui
