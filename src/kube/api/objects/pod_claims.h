// The PersistentVolumeClaims that a pod mounts: those it names, and those that are made for it
// alone, of an ephemeral volume's template.
// - Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "json/value.h"

namespace swell::api {

// The annotation of a claim that names the node for which its volume is to be made.
inline constexpr char kSelectedNode[] = "volume.kubernetes.io/selected-node";

struct MountedClaim {
  std::string name;
  // The ephemeral volume's; null: the pod names a claim that somebody else made.
  const json::Value* claim_template = nullptr;
};

// False: the volume mounts something else.
bool ReadMountedClaim(const json::Value& pod, const json::Value& volume, MountedClaim& claim);
// In the order of the pod's volumes, which the answer refers to.
std::vector<MountedClaim> MountedClaims(const json::Value& pod);

// Whether one pod uses the claim at a time (ReadWriteOncePod).
bool IsForOnePod(const json::Value& claim);
// Whether the claim belongs to the pod, as one that was made for it does. A claim of the same name
// may have been there before.
bool IsMadeFor(const json::Value& claim, const json::Value& pod);
// In Kubernetes' words.
std::string NotMadeFor(const json::Value& claim, const json::Value& pod);

// "NAMESPACE/NAME" of the claim that the PersistentVolume is kept for; empty if it has none.
std::string ClaimKeyOf(const json::Value& volume);

}  // namespace swell::api
