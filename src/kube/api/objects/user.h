// RegisteredUser: a person whom `swell user` has made known to the embedded cluster, read from and
// written to a Secret of type swell.dev/user in one place.
// - Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "kube/api/meta/swell_keys.h"

namespace swell::api {

inline constexpr std::string_view kUserSecretType = "swell.dev/user";
inline constexpr std::string_view kUserNamespace = "kube-system";
// A label of the Secret, and of the role bindings that were made with it: there its value is the
// Secret's name.
inline constexpr std::string_view kUserLabel = keys::kUserSecret;

// How many user and group ids a pod has of its own: 0 to 65,535.
inline constexpr int64_t kIdsOfPod = 65'536;
// An annotation of pods, which the server alone writes: the author chose the ids that the pod
// names, and nobody gave them. They are worth nothing on files of the machine.
inline constexpr std::string_view kIdsChosen = "swell.dev/ids-chosen";

bool IsUserSecret(const json::Value& secret);

struct RegisteredUser {
  RegisteredUser() = default;
  explicit RegisteredUser(const json::Value& secret);

  std::string secret, uid;  // of the Secret
  std::string name;
  std::string role;  // admin, project-admin, researcher or viewer
  std::vector<std::string> projects, groups;
  std::string run_as;   // "1500:100,44" (RunAs); empty: pods run as they say
  std::string created;  // RFC 3339

  // The Secret of a new user. The server gives it a name.
  json::Value ToSecret() const;
};

// kInvalid, with the field as cause (name, role, projects, groups, runAs), if such a user cannot be
// made.
Status CheckNewUser(const RegisteredUser& user);

// "UID[:GID[,GID...]]": the first group is the main one; none: the one of the user's number.
struct RunAs {
  int64_t uid = 0;
  std::vector<int64_t> gids;
};
Result<RunAs> ParseRunAs(std::string_view text);

}  // namespace swell::api
