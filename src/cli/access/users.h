// Users of an embedded cluster, as `swell user` and the pages make and delete them: a Secret, the
// bindings of a role, and credentials that the cluster signs, so an administrator needs nothing but
// a login.
// - Threads: the session's thread; every call blocks until the cluster answers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/api.h"
#include "kube/api/objects/user.h"

namespace swell::cli {

inline constexpr std::string_view kUserDuration = "365d";

// kNotAcceptable: the cluster is Kubernetes, whose users are managed elsewhere.
Status CheckOwnUsers(Api& api);

// By name.
Result<std::vector<api::RegisteredUser>> ListUsers(Api& api);
Result<api::RegisteredUser> FindUser(Api& api, const std::string& name);

// Makes the user and the bindings of the role, or nothing. Waits for the namespace of a project
// that was created a moment ago.
Result<api::RegisteredUser> CreateUser(Api& api, const api::RegisteredUser& user);
// Their credentials are invalid from then on.
Status DeleteUser(Api& api, const std::string& name);

// Where a kubeconfig leads to.
struct ClusterAddress {
  std::string server, ca_pem;
};
struct CredentialsRequest {
  bool certificate = false;  // a client certificate in place of a token
  Duration valid{};
};
// The text of a kubeconfig with new credentials of the user.
Result<std::string> MakeUserKubeconfig(Api& api,
                                       const ClusterAddress& address,
                                       const api::RegisteredUser& user,
                                       const CredentialsRequest& request);

}  // namespace swell::cli
