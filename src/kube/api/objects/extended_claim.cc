#include "kube/api/objects/extended_claim.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/objects/device_claim.h"
#include "kube/api/objects/pod.h"

namespace swell::api {
namespace {

struct Container {
  std::string name;
  Amounts requests;
  bool first = false;  // it ends before the others start
};

struct Request {
  std::string name, device_class;
  int64_t count = 0;
};

struct Mapping {
  std::string container, resource, request;
};

std::vector<Container> ContainersIn(const json::Value& pod) {
  std::vector<Container> all;
  for (const json::Value& one : json::GetArray(pod, {"spec", "initContainers"})) {
    const std::string name(json::GetString(one, {"name"}));
    all.push_back({name, ContainerAmounts(one, AmountField::kRequests), !HasSidecar(pod, name)});
  }
  for (const json::Value& one : json::GetArray(pod, {"spec", "containers"})) {
    all.push_back({std::string(json::GetString(one, {"name"})),
                   ContainerAmounts(one, AmountField::kRequests)});
  }
  return all;
}

int64_t CountOf(const Container& container, const std::string& resource) {
  const auto amount = container.requests.find(resource);
  return amount == container.requests.end() ? 0 : std::max<int64_t>(0, amount->second.Value());
}

// Kubernetes numbers the container among all, and the resource among those of the container.
std::string RequestName(const std::vector<Container>& all, size_t i, const std::string& resource) {
  const Amounts& requests = all[i].requests;
  const auto at = std::distance(requests.begin(), requests.find(resource));
  return StrCat("container-", i, "-request-", at);
}

// What one resource adds. Init containers use the devices of containers that start after them, and
// share what they need beyond those: they run one after the other.
void AddResource(const std::vector<Container>& all,
                 const std::string& resource,
                 const std::string& device_class,
                 std::vector<Request>& requests,
                 std::vector<Mapping>& mappings) {
  std::vector<Request> own(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const int64_t count = CountOf(all[i], resource);
    if (all[i].first || count == 0) continue;
    own[i] = {RequestName(all, i, resource), device_class, count};
    mappings.push_back({all[i].name, resource, own[i].name});
  }
  Request most;
  std::set<std::string> beyond;
  const auto start = static_cast<std::ptrdiff_t>(mappings.size());
  for (size_t i = 0; i < all.size(); ++i) {
    int64_t left = all[i].first ? CountOf(all[i], resource) : 0;
    for (size_t j = i; j < all.size() && left > 0; ++j) {
      if (own[j].count == 0) continue;
      mappings.push_back({all[i].name, resource, own[j].name});
      left -= own[j].count;
    }
    if (left <= 0) continue;
    Request more{RequestName(all, i, resource), device_class, left};
    beyond.insert(more.name);
    mappings.push_back({all[i].name, resource, more.name});
    if (more.count > most.count) most = std::move(more);
  }
  for (auto it = mappings.begin() + start; it != mappings.end(); ++it) {
    if (beyond.contains(it->request)) it->request = most.name;
  }
  if (most.count > 0) requests.push_back(std::move(most));
  for (Request& one : own) {
    if (one.count > 0) requests.push_back(std::move(one));
  }
}

json::Value ClaimOf(const json::Value& pod, const std::vector<Request>& requests) {
  json::Array asked;
  for (const Request& one : requests) {
    asked.push_back(json::Object{{"name", one.name},
                                 {"exactly", json::Object{{"deviceClassName", one.device_class},
                                                          {"allocationMode", "ExactCount"},
                                                          {"count", one.count}}}});
  }
  return json::Object{
      {"apiVersion", "resource.k8s.io/v1"},
      {"kind", "ResourceClaim"},
      {"metadata", json::Object{{"generateName", StrCat(Name(pod), "-extended-resources-")},
                                {"namespace", Namespace(pod)},
                                {"annotations", json::Object{{kExtendedClaim, "true"}}},
                                {"ownerReferences", json::Array{MakeOwnerReference(pod)}}}},
      {"spec", json::Object{{"devices", json::Object{{"requests", std::move(asked)}}}}}};
}

}  // namespace

bool ServesResource(const json::Value& device_class, std::string_view resource) {
  constexpr std::string_view kOfClass = "deviceclass.resource.kubernetes.io/";
  if (resource.starts_with(kOfClass)) return resource.substr(kOfClass.size()) == Name(device_class);
  return !resource.empty() &&
         json::GetString(device_class, {"spec", "extendedResourceName"}) == resource;
}

std::optional<ExtendedClaim> MakeExtendedClaim(
    const json::Value& pod, const std::function<std::string(const std::string&)>& class_of) {
  const std::vector<Container> all = ContainersIn(pod);
  std::map<std::string, std::string> classes;  // of each resource of devices
  for (const Container& container : all) {
    for (const auto& [resource, amount] : container.requests) {
      std::string device_class = amount.zero() ? "" : class_of(resource);
      if (!device_class.empty()) classes.emplace(resource, std::move(device_class));
    }
  }
  if (classes.empty()) return std::nullopt;
  std::vector<Request> requests;
  std::vector<Mapping> mappings;
  for (const auto& [resource, device_class] : classes) {
    AddResource(all, resource, device_class, requests, mappings);
  }
  std::sort(requests.begin(), requests.end(),
            [](const Request& a, const Request& b) { return a.name < b.name; });
  ExtendedClaim out{ClaimOf(pod, requests), {}};
  for (const Mapping& one : mappings) {
    out.mappings.push_back(json::Object{{"containerName", one.container},
                                        {"resourceName", one.resource},
                                        {"requestName", one.request}});
  }
  return out;
}

}  // namespace swell::api
