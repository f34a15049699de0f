// Pod Security Standards: what a pod may ask for at the levels baseline and restricted, as
// Kubernetes' PodSecurity admission checks and words it.
// - Threads: pure functions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"

namespace swell::apiserver {

enum class PodSecurityLevel { kPrivileged, kBaseline, kRestricted };

// "privileged", "baseline", "restricted"; nullopt: another text.
std::optional<PodSecurityLevel> ParsePodSecurityLevel(std::string_view text);
std::string_view NameOf(PodSecurityLevel level);

// A level as it was in one version of Kubernetes.
struct PodSecurityPolicy {
  static constexpr int kLatest = 1'000'000;

  PodSecurityLevel level = PodSecurityLevel::kPrivileged;
  int minor = kLatest;  // of v1

  bool operator==(const PodSecurityPolicy&) const = default;
  // "baseline:latest", "restricted:v1.24"
  std::string ToString() const;
};
// The minor of "v1.24"; kLatest of "latest"; nullopt: another text.
std::optional<int> ParsePodSecurityVersion(std::string_view text);

// One check that a pod does not pass: `host namespaces (hostNetwork=true)`.
struct PodSecurityViolation {
  std::string reason;
  std::string detail;  // may be empty
};

// Whether a hostPath volume may be used although the level says no.
using AllowsVolume = std::function<bool(const json::Value& volume)>;

// `pod` is a pod or a template. A field of a wrong type counts as absent: the schema refuses it.
std::vector<PodSecurityViolation> CheckPodSecurity(const PodSecurityPolicy& policy,
                                                   const json::Value& pod,
                                                   const AllowsVolume& allows = {});
// "host namespaces (hostNetwork=true), privileged (...)".
std::string Describe(const std::vector<PodSecurityViolation>& violations);

}  // namespace swell::apiserver
