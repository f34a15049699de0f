#include "sched_inputs/device_facts.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "kube/api/cel/cel_objects.h"
#include "kube/api/meta/quantity.h"
#include "kube/api/objects/device_claim.h"

namespace swell::sched_inputs {
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
  const auto version = api::ParseCelVersion(json::GetString(attribute, {"version"}), false);
  if (version) return api::CelOf(*version);
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

std::optional<api::Quantity> QuantityAt(const json::Value& holder, std::string_view name) {
  const json::Value* value = json::Find(holder, {name});
  if (value == nullptr) return std::nullopt;
  const auto quantity = api::Quantity::FromJson(*value);
  return quantity.ok() ? std::optional(*quantity) : std::nullopt;
}

api::Quantity Times(api::Quantity unit, int64_t count) {
  api::Quantity sum;
  for (; count > 0; count >>= 1) {
    if ((count & 1) != 0) sum += unit;
    unit += unit;
  }
  return sum;
}

// The smallest amount of the range that is enough.
api::Quantity RoundedUp(const api::Quantity& wanted, const json::Value& range) {
  const auto min = QuantityAt(range, "min");
  if (!min) return wanted;
  if (wanted <= *min) return *min;
  const auto step = QuantityAt(range, "step");
  if (!step || step->MilliValue() <= 0) return wanted;
  const int64_t beyond = wanted.MilliValue() - min->MilliValue();
  const int64_t steps = beyond / step->MilliValue() + (beyond % step->MilliValue() != 0 ? 1 : 0);
  api::Quantity out = *min;
  out += Times(*step, steps);
  return out;
}

// What a request takes of one capacity; `wanted` may be null.
std::optional<api::Quantity> AmountTaken(const json::Value& capacity, const api::Quantity* wanted) {
  const auto whole = QuantityAt(capacity, "value");
  if (!whole || whole->negative()) return std::nullopt;
  const json::Value* policy = json::Find(capacity, {"requestPolicy"});
  const auto usual = policy != nullptr ? QuantityAt(*policy, "default") : std::nullopt;
  if (wanted == nullptr) {
    const api::Quantity taken = usual.value_or(*whole);
    return taken <= *whole && !taken.negative() ? std::optional(taken) : std::nullopt;
  }
  if (*wanted > *whole || wanted->negative()) return std::nullopt;
  api::Quantity taken = *wanted;
  if (policy != nullptr) {
    const json::Array& values = json::GetArray(*policy, {"validValues"});
    if (const json::Value* range = json::Find(*policy, {"validRange"})) {
      taken = RoundedUp(*wanted, *range);
      const auto most = QuantityAt(*range, "max");
      if (most && taken > *most && taken != usual) return std::nullopt;
    } else if (!values.empty()) {  // in ascending order
      std::optional<api::Quantity> enough;
      for (const json::Value& value : values) {
        const auto quantity = api::Quantity::FromJson(value);
        if (!enough && quantity.ok() && *quantity >= *wanted) enough = *quantity;
      }
      if (!enough && taken != usual) return std::nullopt;
      taken = enough.value_or(taken);
    }
  }
  return taken <= *whole ? std::optional(taken) : std::nullopt;
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
  if (!json::GetArray(device, {"bindingConditions"}).empty()) return false;
  const json::Array& takes = json::GetArray(device, {"consumesCounters"});
  if (!takes.empty() && json::GetBool(device, {"allowMultipleAllocations"})) return false;
  return std::all_of(takes.begin(), takes.end(), [](const json::Value& set) {
    return json::GetArray(set, {"compatibilityGroups"}).empty();
  });
}

bool KeepsAway(const json::Value& taint, const std::vector<api::DeviceToleration>& tolerations) {
  const std::string_view effect = json::GetString(taint, {"effect"});
  if (effect != "NoSchedule" && effect != "NoExecute") return false;
  return std::none_of(
      tolerations.begin(), tolerations.end(),
      [&](const api::DeviceToleration& toleration) { return toleration.Tolerates(taint); });
}

std::optional<api::DeviceAmounts> AmountsTaken(const json::Value& device,
                                               const api::DeviceAmounts& asked) {
  const json::Object& capacities = json::GetObject(device, {"capacity"});
  for (const auto& [name, amount] : asked) {
    if (!capacities.contains(name)) return std::nullopt;
  }
  api::DeviceAmounts out;
  for (const auto& capacity : capacities) {
    const auto wanted = asked.find(std::string_view(capacity.key()));
    const auto taken =
        AmountTaken(capacity.value(), wanted == asked.end() ? nullptr : &wanted->second);
    if (!taken) return std::nullopt;
    out.emplace(std::string(capacity.key()), *taken);
  }
  return out;
}

int64_t CounterAmount(const api::Quantity& amount) {
  constexpr int64_t kMost = int64_t{1} << 55;
  return std::clamp<int64_t>(amount.MilliValue(), 0, kMost);
}

std::shared_ptr<const api::CelProgram> CompileCondition(std::string_view expression,
                                                        std::string& problem) {
  auto program = api::CelProgram::Compile(expression, {"device"});
  if (program.ok()) return *program;
  if (problem.empty()) problem = program.status().message();
  return nullptr;
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

}  // namespace swell::sched_inputs
