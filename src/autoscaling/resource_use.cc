#include "autoscaling/resource_use.h"

#include <string_view>
#include <unordered_map>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/objects/pod.h"

namespace swell::autoscaling {
namespace {

constexpr std::string_view kGroup = "metrics.k8s.io";

bool Counts(const json::Value& container, const MetricSpec& spec) {
  return spec.container.empty() || api::ContainerName(container) == spec.container;
}

// What the pod as a whole requests of the resource, or its containers, or one of them; nothing
// where one requests none.
std::optional<double> Requested(const json::Value& pod, const MetricSpec& spec) {
  if (spec.container.empty()) {
    const api::Amounts whole = api::ReadWholePod(api::Spec(pod)).requests;
    const auto found = whole.find(spec.name);
    if (found != whole.end() && !found->second.zero()) {
      return static_cast<double>(found->second.MilliValue()) / 1000;
    }
  }
  double sum = 0;
  for (const json::Value& container : api::Containers(pod)) {
    if (!Counts(container, spec)) continue;
    const auto amount = AmountOf(json::Find(container, {"resources", "requests", spec.name}));
    if (!amount) return {};
    sum += *amount;
  }
  return sum > 0 ? std::optional(sum) : std::nullopt;
}

std::optional<double> Used(const json::Value& metrics, const MetricSpec& spec) {
  std::optional<double> sum;
  for (const json::Value& container : json::GetArray(metrics, {"containers"})) {
    if (!Counts(container, spec)) continue;
    const auto used = AmountOf(json::Find(container, {"usage", spec.name}));
    if (used) sum = sum.value_or(0) + *used;
  }
  return sum;
}

}  // namespace

std::string PodMetricsPath(std::string_view ns) {
  return StrCat("/apis/", kGroup, "/v1beta1/namespaces/", ns, "/pods");
}

std::string MetricsFault(std::string_view api_group, const Status& status) {
  if (status.code() == Code::kNotFound) {
    return StrCat("nothing at ", api_group, ": ", status.message());
  }
  return StrCat(api_group, ": ", status.message());
}

std::optional<double> AmountOf(const json::Value* value) {
  if (value == nullptr) return {};
  auto quantity = api::Quantity::FromJson(*value);
  if (!quantity.ok()) return {};
  return static_cast<double>(quantity->MilliValue()) / 1000;
}

void TakeUse(const Result<json::Value>& pod_metrics,
             const MetricSpec& spec,
             const std::vector<json::SharedValue>& members,
             elastic::MetricSample& look) {
  if (!pod_metrics.ok()) {
    look.fault = MetricsFault(kGroup, pod_metrics.status());
    return;
  }
  std::unordered_map<std::string_view, size_t> numbers;
  for (size_t i = 0; i < members.size(); ++i) numbers.emplace(api::Name(*members[i]), i);
  for (const json::Value& item : api::Items(*pod_metrics)) {
    const auto number = numbers.find(api::Name(item));
    auto used = number == numbers.end() ? std::nullopt : Used(item, spec);
    if (!used) continue;
    if (spec.utilization) {
      const auto requested = Requested(*members[number->second], spec);
      if (!requested) {
        look.fault = StrCat("missing request for ", spec.name, " in pod ", api::Name(item));
        return;
      }
      *used = *used / *requested * 100;
    }
    look.of_members[number->second] = *used;
  }
}

}  // namespace swell::autoscaling
