// Service account tokens: JSON Web Tokens that this server makes and knows again.
//
// A bound token names its expiry, its audiences and, if asked, the pod or secret to which it is
// bound. It ends with its service account and with that object. A legacy token lives in a Secret
// of type kubernetes.io/service-account-token and is good as long as the secret holds it. A token
// that a registered user asked for ends with that user, too.
//
// - Threads: core executor only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kube/apiserver/core.h"

namespace swell::apiserver {

// The audience of tokens that name none, and of this server itself.
inline constexpr std::string_view kTokenIssuer = "https://kubernetes.default.svc.cluster.local";

// The claim of the registered user who asked for a token; the extra field has the uid alone.
inline constexpr std::string_view kRequesterExtra = "swell.dev/requester";

struct TokenUser {
  api::UserInfo user;
  std::vector<std::string> audiences;
};
// kUnauthorized says what is wrong with the token; kNotFound: the server did not issue it.
Result<TokenUser> UserOfAccountToken(Core& core, std::string_view token);

struct TokenClaims {
  std::string ns, account, account_uid;
  std::string bound_kind, bound_name, bound_uid;  // pod or secret; may be empty
  std::vector<std::string> audiences;
  std::string submitter;  // the user for whom it was made; empty: unknown
  // The registered user whose deletion ends it, as UserReference::Organization. May be empty.
  std::string requester;
  WallTime now, expires;
};
std::string MakeBoundToken(Core& core, const TokenClaims& claims);
std::string MakeLegacyToken(const Core& core,
                            const TokenClaims& account,
                            std::string_view secret_name);

// A JSON Web Token with these claims.
std::string SignToken(const TokenKey& key, const json::Value& claims);

// The public key, with which others can verify tokens.
json::Value TokenKeySet(const Core& core);

}  // namespace swell::apiserver
