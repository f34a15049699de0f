// The version of Kubernetes that the embedded server, its nodes and its probes claim.
// docs/conformance.md says how far the server behaves as this one.
// - Threads: constants.
#pragma once

namespace swell::api {

inline constexpr char kKubernetesVersion[] = "v1.37.2+swell";
inline constexpr char kKubernetesMinorVersion[] = "1.37";

}  // namespace swell::api
