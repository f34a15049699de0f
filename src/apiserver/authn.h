// Authentication: from a request's credentials to a user.
// Thread-safety: core executor only.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apiserver/core.h"

namespace swell::apiserver {

// kUnauthorized when the credentials are missing or unknown.
Result<api::UserInfo> Authenticate(Core& core, const api::RestRequest& request);
// A bearer token's user; nullopt when nobody knows it.
std::optional<api::UserInfo> UserOfToken(Core& core, std::string_view token);

// A signed token for a service account (JWT's three parts), valid until `expires`.
std::string MakeServiceAccountToken(const Core& core,
                                    std::string_view ns,
                                    std::string_view name,
                                    std::string_view uid,
                                    const std::vector<std::string>& audiences,
                                    WallTime now,
                                    WallTime expires);

}  // namespace swell::apiserver
