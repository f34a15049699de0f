#include "kube/api/objects/amounts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "kube/api/meta/meta.h"
#include "kube/api/objects/container_list.h"

namespace swell::api {
namespace {

void AtLeast(Amounts& to, const Amounts& floor) {
  for (const auto& [name, amount] : floor) {
    const auto [entry, added] = to.emplace(name, amount);
    if (!added) entry->second = std::max(entry->second, amount);
  }
}

// What the list has of resources that have no amount yet: only that is read.
void AddMissing(Amounts& amounts, const json::Value* list) {
  if (list == nullptr || !list->is_object()) return;
  for (const auto& [key, value] : list->get_object()) {
    const std::string_view name(key.data(), key.size());
    const auto at = amounts.lower_bound(name);
    if (at != amounts.end() && at->first == name) continue;
    const auto quantity = Quantity::FromJson(value);
    if (quantity.ok()) amounts.emplace_hint(at, name, *quantity);
  }
}

Amounts OfWholePod(const json::Value& pod_spec, std::string_view field) {
  Amounts amounts = ReadAmounts(pod_spec, {"resources", field});
  std::erase_if(amounts, [](const auto& item) { return !IsOfWholePod(item.first); });
  return amounts;
}

bool AllContainersLimit(const json::Value& pod_spec, std::string_view resource) {
  for (std::string_view list : {"initContainers", "containers"}) {
    for (const json::Value& container : json::GetArray(pod_spec, {list})) {
      if (json::Find(container, {"resources", "limits", resource}) == nullptr) return false;
    }
  }
  return true;
}

// A container's, or the pod's as a whole.
class QosOfAll {
 public:
  void Count(const Amounts& requests, const Amounts& limits) {
    for (std::string_view name : {"cpu", "memory"}) {
      const auto limit = limits.find(name);
      const auto request = requests.find(name);
      const bool has_limit = limit != limits.end() && limit->second > Quantity();
      const bool has_request = request != requests.end() && request->second > Quantity();
      any_ = any_ || has_limit || has_request;
      guaranteed_ = guaranteed_ && has_limit && has_request && limit->second == request->second;
    }
  }
  std::string_view Class() const {
    if (!any_) return "BestEffort";
    return guaranteed_ ? "Guaranteed" : "Burstable";
  }

 private:
  bool any_ = false;
  bool guaranteed_ = true;
};

}  // namespace

Amounts ReadAmounts(const json::Value* list) {
  Amounts amounts;
  AddMissing(amounts, list);
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
  if (field == AmountField::kLimits) return ReadAmounts(container, {"resources", "limits"});
  Amounts requests = ReadAmounts(container, {"resources", "requests"});
  AddMissing(requests, json::Find(container, {"resources", "limits"}));
  return requests;
}

Amounts ContainersAmounts(const json::Value& pod_spec, AmountField field) {
  Amounts sum;
  for (const json::Value& container : json::GetArray(pod_spec, {"containers"})) {
    Amounts more = ContainerAmounts(container, field);
    if (sum.empty()) {
      sum = std::move(more);
    } else {
      Add(sum, more);
    }
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
  return sum;
}

bool IsHugePages(std::string_view resource) { return resource.starts_with("hugepages-"); }

bool IsOfWholePod(std::string_view resource) {
  return resource == "cpu" || resource == "memory" || IsHugePages(resource);
}

// In the order in which kube-apiserver completes them: a step counts on those before it.
WholePodAmounts ReadWholePod(const json::Value& pod_spec) {
  if (json::GetObject(pod_spec, {"resources"}).empty()) return {};
  WholePodAmounts whole{OfWholePod(pod_spec, "requests"), OfWholePod(pod_spec, "limits")};
  if (whole.empty()) return whole;
  const Amounts limits = ContainersAmounts(pod_spec, AmountField::kLimits);
  // Huge pages cannot be shared out twice: their request and limit are one.
  for (const auto& [name, amount] : limits) {
    if (IsHugePages(name) && !whole.requests.contains(name)) whole.limits.emplace(name, amount);
  }
  for (const auto& [name, amount] : ContainersAmounts(pod_spec, AmountField::kRequests)) {
    if (IsOfWholePod(name) && !IsHugePages(name)) whole.requests.emplace(name, amount);
  }
  whole.requests.insert(whole.limits.begin(), whole.limits.end());
  for (const auto& [name, request] : whole.requests) {
    const auto limit = limits.find(name);
    if (limit == limits.end() || !AllContainersLimit(pod_spec, name)) continue;
    whole.limits.emplace(name, std::max(limit->second, request));
  }
  return whole;
}

void CompleteWholePod(json::Value& pod_spec) {
  const auto [requests, limits] = ReadWholePod(pod_spec);
  for (const auto& [field, amounts] : {std::pair("requests", &requests), {"limits", &limits}}) {
    for (const auto& [name, amount] : *amounts) {
      if (json::Find(pod_spec, {"resources", field, name}) != nullptr) continue;
      json::Set(pod_spec, {"resources", field, name}, amount.ToString());
    }
  }
}

Amounts PodAmounts(const json::Value& pod_spec, AmountField field) {
  Amounts sum = ContainersAmounts(pod_spec, field);
  const WholePodAmounts whole = ReadWholePod(pod_spec);
  for (const auto& [name, amount] : field == AmountField::kLimits ? whole.limits : whole.requests) {
    sum[name] = amount;
  }
  Add(sum, ReadAmounts(pod_spec, {"overhead"}));
  return sum;
}

namespace {

// The node cannot give the pod what its spec says.
bool NeverResized(const json::Value& pod) {
  const std::optional<Condition> pending = FindCondition(pod, "PodResizePending");
  return pending && pending->reason == "Infeasible";
}

// `given` counts the pod's overhead, as PodAmounts does.
Amounts HeldByWholePod(const json::Value& pod, Amounts given) {
  Amounts held = PodAmounts(Spec(pod), AmountField::kRequests);
  std::erase_if(given, [](const auto& item) { return !IsOfWholePod(item.first); });
  if (NeverResized(pod)) {
    std::erase_if(held, [](const auto& item) { return IsOfWholePod(item.first); });
  }
  AtLeast(held, given);
  return held;
}

}  // namespace

Amounts HeldAmounts(const json::Value& pod) {
  const json::Value& spec = Spec(pod);
  const json::Value* of_pod = json::Find(pod, {"status", "allocatedResources"});
  if (of_pod != nullptr && of_pod->is_object() && !ReadWholePod(spec).empty()) {
    return HeldByWholePod(pod, ReadAmounts(of_pod));
  }
  std::map<std::string_view, const json::Value*> given;  // where it is not what the spec says
  for (std::string_view list : {"initContainers", "containers"}) {
    const std::string_view statuses =
        list == "containers" ? "containerStatuses" : "initContainerStatuses";
    for (const json::Value& status : json::GetArray(pod, {"status", statuses})) {
      const json::Value* allocated = json::Find(status, {"allocatedResources"});
      if (allocated == nullptr || !allocated->is_object()) continue;
      const std::string_view name = json::GetString(status, {"name"});
      const json::Value* container = ContainerIn(json::GetArray(spec, {list}), name);
      if (container != nullptr &&
          json::GetObject(*container, {"resources", "requests"}) != allocated->get_object()) {
        given.emplace(name, allocated);
      }
    }
  }
  if (given.empty()) return PodAmounts(spec, AmountField::kRequests);
  const bool never = NeverResized(pod);
  json::Value held = spec;
  for (std::string_view list : {"initContainers", "containers"}) {
    json::Value* containers = json::FindMutable(held, {list});
    if (containers == nullptr || !containers->is_array()) continue;
    for (json::Value& container : containers->get_array()) {
      const auto found = given.find(json::GetString(container, {"name"}));
      if (found == given.end()) continue;
      Amounts amounts = never ? Amounts() : ContainerAmounts(container, AmountField::kRequests);
      AtLeast(amounts, ReadAmounts(found->second));
      json::Set(container, {"resources", "requests"}, ToJson(amounts));
    }
  }
  return PodAmounts(held, AmountField::kRequests);
}

std::string_view QosClass(const json::Value& pod) {
  QosOfAll qos;
  const WholePodAmounts whole = ReadWholePod(Spec(pod));
  if (!whole.empty()) {
    qos.Count(whole.requests, whole.limits);
    return qos.Class();
  }
  for (std::string_view list : {"initContainers", "containers"}) {
    for (const json::Value& container : json::GetArray(pod, {"spec", list})) {
      qos.Count(ContainerAmounts(container, AmountField::kRequests),
                ContainerAmounts(container, AmountField::kLimits));
    }
  }
  return qos.Class();
}

bool IsSidecar(const json::Value& init_container) {
  return json::GetString(init_container, {"restartPolicy"}) == "Always";
}

}  // namespace swell::api
