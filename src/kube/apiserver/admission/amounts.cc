#include "kube/apiserver/admission/amounts.h"

namespace swell::apiserver {

Amounts ReadAmounts(const json::Value& object, json::Path path) {
  Amounts amounts;
  for (const auto& [key, value] : json::GetObject(object, path)) {
    const auto quantity = api::Quantity::FromJson(value);
    if (quantity.ok()) amounts.emplace(std::string(key.data(), key.size()), *quantity);
  }
  return amounts;
}

Amounts PodAmounts(const json::Value& pod, std::string_view field) {
  Amounts sum;
  for (const json::Value& container : json::GetArray(pod, {"spec", "containers"})) {
    Add(sum, ReadAmounts(container, {"resources", field}));
  }
  for (const json::Value& container : json::GetArray(pod, {"spec", "initContainers"})) {
    for (const auto& [name, amount] : ReadAmounts(container, {"resources", field})) {
      const auto [entry, added] = sum.emplace(name, amount);
      if (!added && entry->second < amount) entry->second = amount;
    }
  }
  Add(sum, ReadAmounts(pod, {"spec", "overhead"}));
  return sum;
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

}  // namespace swell::apiserver
