#include "kube/api/objects/device_claim.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::api {
namespace {

std::vector<std::string_view> Expressions(const json::Value& holder) {
  std::vector<std::string_view> out;
  for (const json::Value& selector : json::GetArray(holder, {"selectors"})) {
    out.push_back(json::GetString(selector, {"cel", "expression"}));
  }
  return out;
}

DeviceAlternative ReadAlternative(const json::Value& wanted, std::string request) {
  DeviceAlternative alternative;
  alternative.request = std::move(request);
  alternative.device_class = json::GetString(wanted, {"deviceClassName"});
  alternative.selectors = Expressions(wanted);
  alternative.all = json::GetString(wanted, {"allocationMode"}) == "All";
  alternative.count = std::max<int64_t>(1, json::GetInt(wanted, {"count"}, 1));
  alternative.admin = json::GetBool(wanted, {"adminAccess"});
  for (const auto& amount : json::GetObject(wanted, {"capacity", "requests"})) {
    const auto quantity = Quantity::FromJson(amount.value());
    if (quantity.ok()) alternative.amounts.emplace(std::string(amount.key()), *quantity);
  }
  alternative.tolerations = TolerationsOfDevices(wanted);
  return alternative;
}

std::vector<std::string_view> Texts(const json::Array& array) {
  std::vector<std::string_view> out;
  for (const json::Value& item : array) {
    if (item.is_string()) out.push_back(json::View(item.get_string()));
  }
  return out;
}

}  // namespace

std::vector<DeviceToleration> TolerationsOfDevices(const json::Value& holder) {
  std::vector<DeviceToleration> out;
  for (const json::Value& said : json::GetArray(holder, {"tolerations"})) {
    DeviceToleration read{.key = std::string(json::GetString(said, {"key"})),
                          .exists = json::GetString(said, {"operator"}) == "Exists",
                          .value = std::string(json::GetString(said, {"value"})),
                          .effect = std::string(json::GetString(said, {"effect"})),
                          .seconds = {},
                          .document = &said};
    if (json::Find(said, {"tolerationSeconds"}) != nullptr) {
      read.seconds = json::GetInt(said, {"tolerationSeconds"});
    }
    out.push_back(std::move(read));
  }
  return out;
}

bool RuleTaints(const json::Value& rule,
                std::string_view driver,
                std::string_view pool,
                std::string_view device) {
  const json::Value* selector = json::Find(rule, {"spec", "deviceSelector"});
  if (selector == nullptr || !selector->is_object()) return false;
  auto is = [selector](std::string_view field, std::string_view value) {
    return json::Find(*selector, {field}) == nullptr ||
           json::GetString(*selector, {field}) == value;
  };
  return is("driver", driver) && is("pool", pool) && is("device", device);
}

bool DeviceToleration::Tolerates(const json::Value& taint) const {
  if (!effect.empty() && effect != json::GetString(taint, {"effect"})) return false;
  if (!key.empty() && key != json::GetString(taint, {"key"})) return false;
  return exists || value == json::GetString(taint, {"value"});
}

bool HasDeviceClaims(const json::Value& pod) {
  return !json::GetArray(pod, {"spec", "resourceClaims"}).empty() || HasExtendedClaim(pod);
}

bool HasExtendedClaim(const json::Value& pod) {
  return !json::GetString(pod, {"status", "extendedResourceClaimStatus", "resourceClaimName"})
              .empty();
}

std::vector<MappedRequest> MappedRequestsOf(const json::Value& pod) {
  std::vector<MappedRequest> out;
  for (const json::Value& one :
       json::GetArray(pod, {"status", "extendedResourceClaimStatus", "requestMappings"})) {
    out.push_back({json::GetString(one, {"containerName"}), json::GetString(one, {"resourceName"}),
                   json::GetString(one, {"requestName"})});
  }
  return out;
}

std::vector<PodClaim> DeviceClaimsOf(const json::Value& pod) {
  std::vector<PodClaim> out;
  const json::Array& made = json::GetArray(pod, {"status", "resourceClaimStatuses"});
  for (const json::Value& entry : json::GetArray(pod, {"spec", "resourceClaims"})) {
    PodClaim claim{.name = json::GetString(entry, {"name"}),
                   .claim = json::GetString(entry, {"resourceClaimName"}),
                   .template_name = json::GetString(entry, {"resourceClaimTemplateName"})};
    for (const json::Value& status : made) {
      if (claim.template_name.empty() || json::GetString(status, {"name"}) != claim.name) continue;
      claim.claim = json::GetString(status, {"resourceClaimName"});
      claim.needless = claim.claim.empty();
    }
    out.push_back(claim);
  }
  if (HasExtendedClaim(pod)) {
    out.push_back({.name = kExtendedClaimName,
                   .claim = json::GetString(
                       pod, {"status", "extendedResourceClaimStatus", "resourceClaimName"}),
                   .template_name = {}});
  }
  return out;
}

ClaimAsks::ClaimAsks(const json::Value& claim) {
  for (const json::Value& request : json::GetArray(claim, {"spec", "devices", "requests"})) {
    ClaimRequest read{.name = json::GetString(request, {"name"}), .alternatives = {}};
    if (const json::Value* exactly = json::Find(request, {"exactly"})) {
      read.alternatives.push_back(ReadAlternative(*exactly, std::string(read.name)));
    }
    for (const json::Value& alternative : json::GetArray(request, {"firstAvailable"})) {
      read.alternatives.push_back(ReadAlternative(
          alternative, StrCat(read.name, "/", json::GetString(alternative, {"name"}))));
    }
    requests.push_back(std::move(read));
  }
  for (const json::Value& constraint : json::GetArray(claim, {"spec", "devices", "constraints"})) {
    DeviceMatch match{.attribute = json::GetString(constraint, {"matchAttribute"}),
                      .requests = Texts(json::GetArray(constraint, {"requests"}))};
    if (match.attribute.empty()) {
      match.attribute = json::GetString(constraint, {"distinctAttribute"});
      match.distinct = true;
    }
    matches.push_back(std::move(match));
  }
}

std::vector<std::string_view> ClassSelectors(const json::Value& device_class) {
  const json::Value* spec = json::Find(device_class, {"spec"});
  return spec == nullptr ? std::vector<std::string_view>() : Expressions(*spec);
}

bool IsAllocated(const json::Value& claim) {
  const json::Value* allocation = json::Find(claim, {"status", "allocation"});
  return allocation != nullptr && allocation->is_object();
}

std::vector<AllocatedDevice> AllocatedDevices(const json::Value& claim) {
  std::vector<AllocatedDevice> out;
  for (const json::Value& result :
       json::GetArray(claim, {"status", "allocation", "devices", "results"})) {
    out.push_back({.request = json::GetString(result, {"request"}),
                   .driver = json::GetString(result, {"driver"}),
                   .pool = json::GetString(result, {"pool"}),
                   .device = json::GetString(result, {"device"}),
                   .admin = json::GetBool(result, {"adminAccess"}),
                   .document = &result});
  }
  return out;
}

std::vector<ClaimConsumer> ConsumersOf(const json::Value& claim) {
  std::vector<ClaimConsumer> out;
  for (const json::Value& user : json::GetArray(claim, {"status", "reservedFor"})) {
    out.push_back({json::GetString(user, {"resource"}), json::GetString(user, {"name"}),
                   json::GetString(user, {"uid"})});
  }
  return out;
}

bool IsReservedFor(const json::Value& claim, std::string_view uid) {
  const std::vector<ClaimConsumer> users = ConsumersOf(claim);
  return std::any_of(users.begin(), users.end(),
                     [uid](const ClaimConsumer& user) { return user.uid == uid; });
}

std::string PodOfClaim(const json::Value& claim) {
  if (Annotation(claim, kPodClaimName).empty() && Annotation(claim, kExtendedClaim).empty()) {
    return {};
  }
  const auto owner = ControllerOf(claim);
  return owner && owner->kind == "Pod" ? owner->uid : std::string();
}

std::vector<ContainerClaim> ContainerClaims(const json::Value& container) {
  std::vector<ContainerClaim> out;
  for (const json::Value& claim : json::GetArray(container, {"resources", "claims"})) {
    out.push_back({json::GetString(claim, {"name"}), json::GetString(claim, {"request"})});
  }
  return out;
}

bool IsOfRequest(std::string_view request, std::string_view asked) {
  if (asked.empty() || request == asked) return true;
  return request.size() > asked.size() && request.starts_with(asked) &&
         request[asked.size()] == '/';
}

}  // namespace swell::api
