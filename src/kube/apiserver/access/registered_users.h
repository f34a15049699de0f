// People whom `swell user` has made known to the embedded cluster.
//
// Each is a Secret of type swell.dev/user in kube-system that says the name and the groups. Their
// credentials name the secret and its uid: a token in its claims, a client certificate as an
// organization. So a user who is deleted is nobody at once, whatever they still hold, and one whose
// groups change need no new credentials.
//
// - Threads: core executor only.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kube/api/objects/user.h"
#include "kube/apiserver/call.h"
#include "kube/apiserver/core.h"

namespace swell::apiserver {

// The group of all registered users.
inline constexpr std::string_view kUsersGroup = "swell:users";
// The claim of their tokens that names them.
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

// Nullopt: no registered user has this name.
std::optional<UserReference> ReferenceOfUser(const Core& core, std::string_view name);

// As whom pods of the user of this name run, as the secret has it ("1500:100,44"); empty: as they
// say themselves.
std::string RunAsOfUser(const Core& core, std::string_view name);

// POST /swell/v1/users/SECRET/credentials: a token, or a certificate with its key. False: it is
// another request.
bool HandleUserCredentials(Core& core, const CallPtr& call);

}  // namespace swell::apiserver
