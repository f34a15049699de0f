#include "kube/controllers/cluster/volume_match.h"

#include <algorithm>

#include "kube/api/meta/local_storage.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/quantity.h"
#include "kube/api/meta/selector.h"

namespace swell::controllers {
namespace {

api::Quantity AmountOf(const json::Value& object, json::Path path) {
  const json::Value* amount = json::Find(object, path);
  if (amount == nullptr) return {};
  Result<api::Quantity> parsed = api::Quantity::FromJson(*amount);
  return parsed.ok() ? *parsed : api::Quantity();
}

std::string_view ModeOf(const json::Value& object) {
  return json::GetString(object, {"spec", "volumeMode"}, "Filesystem");
}

}  // namespace

std::string ClassOf(const json::Value& claim_or_volume) {
  const std::string_view annotated =
      api::Annotation(claim_or_volume, "volume.beta.kubernetes.io/storage-class");
  if (!annotated.empty()) return std::string(annotated);
  return std::string(json::GetString(claim_or_volume, {"spec", "storageClassName"}));
}

bool WaitsForConsumer(const json::Value& storage_class) {
  return json::GetString(storage_class, {"volumeBindingMode"}) == "WaitForFirstConsumer";
}

bool AwaitsNode(const json::Value& claim, const json::Value* storage_class) {
  if (storage_class == nullptr || !WaitsForConsumer(*storage_class)) return false;
  const std::string_view provisioner = json::GetString(*storage_class, {"provisioner"});
  return json::GetString(claim, {"spec", "volumeName"}).empty() && provisioner != kNoProvisioner &&
         provisioner != api::kLocalStorage;
}

std::string_view SelectedNode(const json::Value& claim) {
  return api::Annotation(claim, kSelectedNode);
}

std::string WhyNotFor(const json::Value& volume, const json::Value& claim) {
  const api::Quantity wanted = AmountOf(claim, {"spec", "resources", "requests", "storage"});
  if ((AmountOf(volume, {"spec", "capacity", "storage"}) <=> wanted) < 0) {
    return "requested PV is too small";
  }
  if (ClassOf(volume) != ClassOf(claim)) return "storageClassName does not match";
  if (ModeOf(volume) != ModeOf(claim)) return "incompatible volumeMode";
  const json::Array& offered = json::GetArray(volume, {"spec", "accessModes"});
  for (const json::Value& mode : json::GetArray(claim, {"spec", "accessModes"})) {
    if (std::find(offered.begin(), offered.end(), mode) == offered.end()) {
      return "incompatible accessMode";
    }
  }
  return {};
}

bool IsKeptFor(const json::Value& volume, const json::Value& claim) {
  const json::Value* ref = json::Find(volume, {"spec", "claimRef"});
  if (ref == nullptr || json::GetString(*ref, {"namespace"}) != api::Namespace(claim) ||
      json::GetString(*ref, {"name"}) != api::Name(claim)) {
    return false;
  }
  const std::string_view uid = json::GetString(*ref, {"uid"});
  return uid.empty() || uid == api::Uid(claim);
}

bool SmallerVolume(const json::Value& a, const json::Value& b) {
  const json::Path path{"spec", "capacity", "storage"};
  const auto order = AmountOf(a, path) <=> AmountOf(b, path);
  return order != 0 ? order < 0 : api::Name(a) < api::Name(b);
}

}  // namespace swell::controllers
