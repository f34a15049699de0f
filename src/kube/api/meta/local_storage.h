// The name under which volumes that are directories of one machine are made, found and removed: the
// provisioner of StorageClass `standard`, and the CSI driver of its volumes.
// - Threads: constants.
// - Invariants: it is a name that Kubernetes takes for a CSI driver (RFC 1123).
#pragma once

#include <string_view>

namespace swell::api {

inline constexpr std::string_view kLocalStorage = "local.swell.dev";

}  // namespace swell::api
