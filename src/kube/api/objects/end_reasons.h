// Reasons of a container's end that a node of Swell's gives beside Kubernetes' own. Only the node
// writes them. A message may be the program's own words.
// - Threads: constants.
#pragma once

#include <string_view>

namespace swell::api {

// Ends the reason of a container that its node stopped as its probe asks: "LivenessProbeFailed",
// "StartupProbeFailed".
inline constexpr std::string_view kProbeFailedReason = "ProbeFailed";

}  // namespace swell::api
