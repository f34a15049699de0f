// People whom `swell user` has made known to the embedded cluster.
//
// Each is a Secret of type swell.dev/user in kube-system that says the name and the groups. Their
// credentials name the secret and its uid: a token in its claims, a client certificate as an
// organization. So a user who is deleted is nobody at once, whatever they still hold, and one whose
// groups change need no new credentials.
//
// Thread-safety: core executor only.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apiserver/core.h"

namespace swell::apiserver {

inline constexpr std::string_view kUserSecretType = "swell.dev/user";
inline constexpr std::string_view kUserNamespace = "kube-system";
// Of everybody who is made known so.
inline constexpr std::string_view kUsersGroup = "swell:users";
// Of the claims of their tokens.
inline constexpr std::string_view kUserClaim = "swell.dev/user";

struct UserReference {
  std::string secret;
  std::string uid;

  // "user:NAME:UID", as a certificate's organization has it.
  std::string Organization() const;
  static std::optional<UserReference> FromOrganization(std::string_view organization);
};

// kUnauthorized: there is no such user any more.
Result<api::UserInfo> FindRegisteredUser(const Core& core, const UserReference& reference);

}  // namespace swell::apiserver
