#include "kube/api/objects/pod_claims.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::api {

bool ReadMountedClaim(const json::Value& pod, const json::Value& volume, MountedClaim& claim) {
  const json::Value* claim_template = json::Find(volume, {"ephemeral", "volumeClaimTemplate"});
  claim = {};
  if (claim_template != nullptr) {
    claim = {StrCat(Name(pod), "-", json::GetString(volume, {"name"})), claim_template};
  } else {
    claim.name = json::GetString(volume, {"persistentVolumeClaim", "claimName"});
  }
  return !claim.name.empty();
}

std::vector<MountedClaim> MountedClaims(const json::Value& pod) {
  std::vector<MountedClaim> claims;
  MountedClaim claim;
  for (const json::Value& volume : json::GetArray(pod, {"spec", "volumes"})) {
    if (ReadMountedClaim(pod, volume, claim)) claims.push_back(claim);
  }
  return claims;
}

bool IsForOnePod(const json::Value& claim) {
  const json::Array& modes = json::GetArray(claim, {"spec", "accessModes"});
  return std::find(modes.begin(), modes.end(), json::Value("ReadWriteOncePod")) != modes.end();
}

bool IsMadeFor(const json::Value& claim, const json::Value& pod) {
  const auto owner = ControllerOf(claim);
  return owner && owner->uid == Uid(pod);
}

std::string NotMadeFor(const json::Value& claim, const json::Value& pod) {
  return StrCat("PVC ", KeyOf(claim), " was not created for pod ", KeyOf(pod),
                " (pod is not owner)");
}

std::string ClaimKeyOf(const json::Value& volume) {
  const json::Value* ref = json::Find(volume, {"spec", "claimRef"});
  if (ref == nullptr) return {};
  return StrCat(json::GetString(*ref, {"namespace"}), "/", json::GetString(*ref, {"name"}));
}

}  // namespace swell::api
