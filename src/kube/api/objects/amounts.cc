#include "kube/api/objects/amounts.h"

#include <algorithm>

namespace swell::api {
namespace {

void AtLeast(Amounts& to, const Amounts& floor) {
  for (const auto& [name, amount] : floor) {
    const auto [entry, added] = to.emplace(name, amount);
    if (!added) entry->second = std::max(entry->second, amount);
  }
}

}  // namespace

Amounts ReadAmounts(const json::Value* list) {
  Amounts amounts;
  if (list == nullptr || !list->is_object()) return amounts;
  for (const auto& [key, value] : list->get_object()) {
    const auto quantity = Quantity::FromJson(value);
    if (quantity.ok()) amounts.emplace(std::string(key.data(), key.size()), *quantity);
  }
  return amounts;
}

Amounts ReadAmounts(const json::Value& object, json::Path path) {
  return ReadAmounts(json::Find(object, path));
}

void Add(Amounts& to, const Amounts& more) {
  for (const auto& [name, amount] : more) {
    const auto [entry, added] = to.emplace(name, amount);
    if (!added) entry->second += amount;
  }
}

json::Object ToJson(const Amounts& amounts) {
  json::Object object;
  for (const auto& [name, amount] : amounts) object[name] = amount.ToString();
  return object;
}

Amounts ContainerAmounts(const json::Value& container, AmountField field) {
  Amounts limits = ReadAmounts(container, {"resources", "limits"});
  if (field == AmountField::kLimits) return limits;
  Amounts requests = ReadAmounts(container, {"resources", "requests"});
  requests.merge(limits);
  return requests;
}

Amounts PodAmounts(const json::Value& pod_spec, AmountField field) {
  Amounts sum;
  for (const json::Value& container : json::GetArray(pod_spec, {"containers"})) {
    Add(sum, ContainerAmounts(container, field));
  }
  Amounts sidecars;
  Amounts starting;
  for (const json::Value& container : json::GetArray(pod_spec, {"initContainers"})) {
    Amounts now = ContainerAmounts(container, field);
    if (IsSidecar(container)) {
      Add(sidecars, now);
      AtLeast(starting, sidecars);
    } else {
      Add(now, sidecars);
      AtLeast(starting, now);
    }
  }
  Add(sum, sidecars);
  AtLeast(sum, starting);
  for (auto& [name, amount] : ContainerAmounts(pod_spec, field)) sum[name] = amount;
  Add(sum, ReadAmounts(pod_spec, {"overhead"}));
  return sum;
}

std::string_view QosClass(const json::Value& pod) {
  bool any = false;
  bool guaranteed = true;
  for (std::string_view list : {"initContainers", "containers"}) {
    for (const json::Value& container : json::GetArray(pod, {"spec", list})) {
      const Amounts limits = ContainerAmounts(container, AmountField::kLimits);
      const Amounts requests = ContainerAmounts(container, AmountField::kRequests);
      for (std::string_view name : {"cpu", "memory"}) {
        const auto limit = limits.find(name);
        const auto request = requests.find(name);
        const bool has_limit = limit != limits.end() && limit->second > Quantity();
        const bool has_request = request != requests.end() && request->second > Quantity();
        any = any || has_limit || has_request;
        guaranteed = guaranteed && has_limit && has_request && limit->second == request->second;
      }
    }
  }
  if (!any) return "BestEffort";
  return guaranteed ? "Guaranteed" : "Burstable";
}

bool IsSidecar(const json::Value& init_container) {
  return json::GetString(init_container, {"restartPolicy"}) == "Always";
}

}  // namespace swell::api
