// Authentication: from a request's credentials to a user.
// - Threads: core executor only.
#pragma once

#include <string_view>

#include "kube/apiserver/access/account_tokens.h"
#include "kube/apiserver/core.h"

namespace swell::apiserver {

// kUnauthorized when the credentials are missing or unknown.
Result<api::UserInfo> Authenticate(Core& core, const api::RestRequest& request);
// A bearer token's user and audiences; an error says why the token is not accepted.
Result<TokenUser> UserOfToken(Core& core, std::string_view token);

}  // namespace swell::apiserver
