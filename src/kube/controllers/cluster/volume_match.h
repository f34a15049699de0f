// VolumeMatch: which volumes fit which claims.
// - Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "json/value.h"
#include "kube/api/objects/pod_claims.h"

namespace swell::controllers {

// The storage class of a claim or a volume; "" if it names none.
std::string ClassOf(const json::Value& claim_or_volume);
// Whether volumes of the class are brought to claims only when a pod asks for them.
bool WaitsForConsumer(const json::Value& storage_class);
// Whether the claim's volume will be made by somebody else once it names a node. Null: it has no
// class.
bool AwaitsNode(const json::Value& claim, const json::Value* storage_class);
// The node that it names; empty: none yet.
std::string_view SelectedNode(const json::Value& claim);
using api::kSelectedNode;
inline constexpr char kNoProvisioner[] = "kubernetes.io/no-provisioner";
// Why the volume cannot be the claim's, in the words of its events; "" when it can.
std::string WhyNotFor(const json::Value& volume, const json::Value& claim);
// Whether the volume is kept for the claim: by its uid, or by its name while that has none.
bool IsKeptFor(const json::Value& volume, const json::Value& claim);
// Whether the volume is smaller.
bool SmallerVolume(const json::Value& a, const json::Value& b);

}  // namespace swell::controllers
