#include "sched_inputs/device_facts.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "kube/api/meta/quantity.h"
#include "kube/api/objects/device_claim.h"

namespace swell::controllers {
namespace {

// "model" of driver gpu.example.com is gpu.example.com/model.
std::pair<std::string, std::string> Qualified(std::string_view name, std::string_view driver) {
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos) return {std::string(driver), std::string(name)};
  return {std::string(name.substr(0, slash)), std::string(name.substr(slash + 1))};
}

using CelMembers = std::vector<std::pair<api::CelValue, api::CelValue>>;

api::CelValue MapOf(CelMembers members) {
  return {std::make_shared<const CelMembers>(std::move(members))};
}

// The one value that an attribute has; lists stay lists.
api::CelValue AttributeValue(const json::Value& attribute) {
  if (!attribute.is_object() || attribute.get_object().empty()) return {};
  return api::CelValue::FromJson(attribute.get_object().begin()->value());
}

// Attributes or amounts by domain and name.
template <class Read>
api::CelValue ByDomain(const json::Object& facts, std::string_view driver, Read read) {
  std::map<std::string, CelMembers> domains;
  for (const auto& fact : facts) {
    auto [domain, name] = Qualified(fact.key(), driver);
    domains[domain].emplace_back(api::CelValue{name}, read(fact.value()));
  }
  domains[std::string(driver)];
  CelMembers out;
  for (auto& [domain, members] : domains) {
    out.emplace_back(api::CelValue{domain}, MapOf(std::move(members)));
  }
  return MapOf(std::move(out));
}

}  // namespace

bool IsGpuDriver(std::string_view driver) {
  return driver == api::kGpuDriver || driver == "gpu.nvidia.com";
}

api::CelValue DeviceValue(const json::Value& device, std::string_view driver) {
  auto amount = [](const json::Value& capacity) {
    const json::Value* value = json::Find(capacity, {"value"});
    const auto quantity =
        value != nullptr ? api::Quantity::FromJson(*value) : Result<api::Quantity>(api::Quantity());
    return api::CelValue::Of(quantity.ok() ? *quantity : api::Quantity());
  };
  return MapOf(
      {{{std::string("driver")}, {std::string(driver)}},
       {{std::string("attributes")},
        ByDomain(json::GetObject(device, {"attributes"}), driver, AttributeValue)},
       {{std::string("capacity")}, ByDomain(json::GetObject(device, {"capacity"}), driver, amount)},
       {{std::string("allowMultipleAllocations")},
        {json::GetBool(device, {"allowMultipleAllocations"})}}});
}

bool IsPlainDevice(const json::Value& device) {
  if (!json::GetArray(device, {"consumesCounters"}).empty()) return false;
  if (!json::GetArray(device, {"bindingConditions"}).empty()) return false;
  const json::Array& taints = json::GetArray(device, {"taints"});
  return std::none_of(taints.begin(), taints.end(), [](const json::Value& taint) {
    const std::string_view effect = json::GetString(taint, {"effect"});
    return effect == "NoSchedule" || effect == "NoExecute";
  });
}

std::string AttributeText(const json::Value& device,
                          std::string_view driver,
                          std::string_view attribute) {
  const auto [domain, name] = Qualified(attribute, driver);
  for (const auto& fact : json::GetObject(device, {"attributes"})) {
    if (Qualified(fact.key(), driver) == std::pair(domain, name)) return json::Print(fact.value());
  }
  return "";
}

}  // namespace swell::controllers
