#include "kube/apiserver/access/account_tokens.h"

#include <algorithm>

#include "base/base64_url.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"
#include "kube/apiserver/access/access.h"
#include "kube/apiserver/access/registered_users.h"
#include "kube/apiserver/access/submitter.h"

namespace swell::apiserver {
namespace {

constexpr std::string_view kLegacyIssuer = "kubernetes/serviceaccount";
constexpr size_t kMaxTokenBytes = 16 << 10;
constexpr size_t kMaxKnownTokens = 1024;
// How long the token of a deleted pod is still good: its last words are often to the API.
constexpr Duration kDeletedGrace = std::chrono::seconds(60);

Status Invalid(std::string_view why) { return Status(Code::kUnauthorized, std::string(why)); }

std::string Signed(const Core& core, const json::Value& claims) {
  return SignToken(*core.options.token_key, claims);
}

// The claims of a token that this server has signed; null when it has not.
json::SharedValue VerifiedClaims(Core& core, std::string_view token) {
  if (!core.options.token_key || token.size() > kMaxTokenBytes) return nullptr;
  auto& known_tokens = core.Get<AccessControl>().known_tokens;
  const auto known = known_tokens.find(token);
  if (known != known_tokens.end()) return known->second;
  const auto parts = Split(token, '.');
  if (parts.size() != 3) return nullptr;
  const auto header = Base64UrlDecode(parts[0]);
  const auto payload = Base64UrlDecode(parts[1]);
  const auto signature = Base64UrlDecode(parts[2]);
  if (!header || !payload || !signature) return nullptr;
  const auto parsed_header = json::Parse(*header);
  // Only the key's own algorithm counts, whatever the token would like to be checked with.
  if (!parsed_header.ok() || json::GetString(*parsed_header, {"alg"}) !=
                                 json::GetString(core.options.token_key->jwk(), {"alg"})) {
    return nullptr;
  }
  const std::string_view signed_part = token.substr(0, parts[0].size() + 1 + parts[1].size());
  if (!core.options.token_key->Verify(signed_part, *signature)) return nullptr;
  auto claims = json::Parse(*payload);
  if (!claims.ok()) return nullptr;
  auto shared = std::make_shared<const json::Value>(std::move(*claims));
  if (known_tokens.size() >= kMaxKnownTokens) known_tokens.clear();
  known_tokens.emplace(token, shared);
  return shared;
}

store::EntryPtr FindLiving(Core& core, const store::Key& key, std::string_view uid) {
  auto entry = core.store.Get(key);
  return entry && entry->attributes.uid == uid ? entry : nullptr;
}

// Deleted objects count for a little longer where they still exist.
bool Gone(const Core& core, const store::EntryPtr& entry) {
  if (!entry) return true;
  const auto deleted =
      api::ParseTime(json::GetString(*entry->Parsed(), {"metadata", "deletionTimestamp"}));
  return deleted && *deleted + kDeletedGrace < core.clock.Now();
}

TokenUser UserFor(std::string_view ns, std::string_view name, std::string_view uid) {
  TokenUser answer;
  answer.user.name = AccountUserName(ns, name);
  answer.user.uid = uid;
  answer.user.groups = AccountGroups(ns);
  return answer;
}

void AddSubmitter(TokenUser& answer, std::string_view submitter) {
  if (submitter.empty()) return;
  answer.user.extra.push_back({std::string(kSubmitterExtra), {std::string(submitter)}});
}

// The user who asked for it is there still, and is the same one. What is open ends with the user.
Status CheckRequester(const Core& core, const json::Value& claims, TokenUser& answer) {
  const std::string_view text = json::GetString(claims, {kRequesterExtra});
  if (text.empty()) return Status::Ok();
  const auto reference = UserReference::FromOrganization(text);
  if (reference && FindRegisteredUser(core, *reference).ok()) {
    answer.user.extra.push_back({std::string(kRequesterExtra), {reference->uid}});
    return Status::Ok();
  }
  return Invalid("the user who asked for the service account token is no longer a user");
}

void AddNode(const Core& core, const json::Value& pod, TokenUser& answer) {
  const std::string node(api::NodeName(pod));
  if (node.empty()) return;
  answer.user.extra.push_back({"authentication.kubernetes.io/node-name", {node}});
  if (const auto entry = core.store.Get({"nodes", "", node})) {
    answer.user.extra.push_back({"authentication.kubernetes.io/node-uid", {entry->attributes.uid}});
  }
}

// The pod or secret that the token is bound to must be the one it was made for.
Status CheckBound(Core& core, const json::Value& claims, std::string_view ns, TokenUser& answer) {
  for (const auto& [field, resource] : {std::pair("pod", "pods"), {"secret", "secrets"}}) {
    const std::string_view name = json::GetString(claims, {"kubernetes.io", field, "name"});
    if (name.empty()) continue;
    const std::string_view uid = json::GetString(claims, {"kubernetes.io", field, "uid"});
    const auto bound = FindLiving(core, {resource, std::string(ns), std::string(name)}, uid);
    if (Gone(core, bound)) return Invalid("service account token has been invalidated");
    if (std::string_view(field) == "secret") continue;
    const std::string_view numbers_of = api::Annotation(*bound->Parsed(), kRunAsOf);
    if (!numbers_of.empty() && RunAsOfUser(core, numbers_of).empty()) {
      return Invalid("the user whose pod has the service account token is no longer a user");
    }
    AddSubmitter(answer, api::Annotation(*bound->Parsed(), api::keys::kUser));
    answer.user.extra.push_back({"authentication.kubernetes.io/pod-name", {std::string(name)}});
    answer.user.extra.push_back({"authentication.kubernetes.io/pod-uid", {std::string(uid)}});
    AddNode(core, *bound->Parsed(), answer);
  }
  return Status::Ok();
}

Status CheckTimes(const Core& core, const json::Value& claims) {
  const int64_t now_s = core.clock.Now().unix_ns / 1'000'000'000;
  if (json::GetInt(claims, {"exp"}) <= now_s) {
    return Invalid("service account token has expired");
  }
  if (json::GetInt(claims, {"nbf"}) > now_s) {
    return Invalid("service account token is not valid yet");
  }
  return Status::Ok();
}

Result<TokenUser> UserOfBound(Core& core, const json::Value& claims) {
  SWELL_RETURN_IF_ERROR(CheckTimes(core, claims));
  const std::string_view ns = json::GetString(claims, {"kubernetes.io", "namespace"});
  const std::string_view name =
      json::GetString(claims, {"kubernetes.io", "serviceaccount", "name"});
  const std::string_view uid = json::GetString(claims, {"kubernetes.io", "serviceaccount", "uid"});
  TokenUser answer = UserFor(ns, name, uid);
  if (Gone(core, FindLiving(core, {"serviceaccounts", std::string(ns), std::string(name)}, uid))) {
    return Invalid("service account token has been invalidated");
  }
  SWELL_RETURN_IF_ERROR(CheckRequester(core, claims, answer));
  const std::string_view id = json::GetString(claims, {"jti"});
  if (!id.empty()) {
    answer.user.extra.push_back(
        {"authentication.kubernetes.io/credential-id", {StrCat("JTI=", id)}});
  }
  AddSubmitter(answer, json::GetString(claims, {kSubmitterExtra}));
  SWELL_RETURN_IF_ERROR(CheckBound(core, claims, ns, answer));
  std::ranges::stable_sort(answer.user.extra, {}, [](const auto& one) { return one.first; });
  for (const json::Value& audience : json::GetArray(claims, {"aud"})) {
    if (audience.is_string()) answer.audiences.emplace_back(json::View(audience.get_string()));
  }
  return answer;
}

Result<TokenUser> UserOfRegistered(const Core& core,
                                   const json::Value& claims,
                                   const json::Value& user) {
  SWELL_RETURN_IF_ERROR(CheckTimes(core, claims));
  TokenUser answer;
  SWELL_ASSIGN_OR_RETURN(answer.user,
                         FindRegisteredUser(core, {std::string(json::GetString(user, {"secret"})),
                                                   std::string(json::GetString(user, {"uid"}))}));
  answer.audiences = {std::string(kTokenIssuer)};
  return answer;
}

Result<TokenUser> UserOfLegacy(Core& core, const json::Value& claims, std::string_view token) {
  const std::string ns(json::GetString(claims, {"kubernetes.io/serviceaccount/namespace"}));
  const std::string name(
      json::GetString(claims, {"kubernetes.io/serviceaccount/service-account.name"}));
  const std::string_view uid =
      json::GetString(claims, {"kubernetes.io/serviceaccount/service-account.uid"});
  const std::string secret_name(
      json::GetString(claims, {"kubernetes.io/serviceaccount/secret.name"}));
  const auto secret = core.store.Get({"secrets", ns, secret_name});
  if (Gone(core, secret) || Gone(core, FindLiving(core, {"serviceaccounts", ns, name}, uid)) ||
      Base64Decode(json::GetString(*secret->Parsed(), {"data", "token"})) != token) {
    return Invalid("service account token has been invalidated");
  }
  TokenUser answer = UserFor(ns, name, uid);
  SWELL_RETURN_IF_ERROR(CheckRequester(core, claims, answer));
  AddSubmitter(answer, api::Annotation(*secret->Parsed(), api::keys::kUser));
  answer.audiences = {std::string(kTokenIssuer)};
  return answer;
}

}  // namespace

Result<TokenUser> UserOfAccountToken(Core& core, std::string_view token) {
  const json::SharedValue claims = VerifiedClaims(core, token);
  if (!claims) return Status(Code::kNotFound, "not a token of this server");
  if (json::GetString(*claims, {"iss"}) == kLegacyIssuer) {
    return UserOfLegacy(core, *claims, token);
  }
  if (const json::Value* user = json::Find(*claims, {kUserClaim})) {
    return UserOfRegistered(core, *claims, *user);
  }
  return UserOfBound(core, *claims);
}

std::string SignToken(const TokenKey& key, const json::Value& claims) {
  const json::Object header{{"alg", json::GetString(key.jwk(), {"alg"})},
                            {"kid", json::GetString(key.jwk(), {"kid"})}};
  const std::string body =
      StrCat(Base64UrlEncode(json::Print(header)), ".", Base64UrlEncode(json::Print(claims)));
  return StrCat(body, ".", Base64UrlEncode(key.Sign(body)));
}

std::string MakeBoundToken(Core& core, const TokenClaims& token) {
  json::Object where;
  where["namespace"] = token.ns;
  if (!token.bound_kind.empty()) {
    where[ToLower(token.bound_kind)] =
        json::Object{{"name", token.bound_name}, {"uid", token.bound_uid}};
  }
  where["serviceaccount"] = json::Object{{"name", token.account}, {"uid", token.account_uid}};
  json::Array audience;
  for (const std::string& one : token.audiences) audience.emplace_back(one);
  json::Object claims;
  claims["aud"] = std::move(audience);
  claims["exp"] = token.expires.unix_ns / 1'000'000'000;
  claims["iat"] = token.now.unix_ns / 1'000'000'000;
  claims["iss"] = kTokenIssuer;
  claims["jti"] = core.random.Uuid();
  claims["kubernetes.io"] = std::move(where);
  claims["nbf"] = token.now.unix_ns / 1'000'000'000;
  claims["sub"] = AccountUserName(token.ns, token.account);
  if (!token.submitter.empty()) claims[kSubmitterExtra] = token.submitter;
  if (!token.requester.empty()) claims[kRequesterExtra] = token.requester;
  return Signed(core, claims);
}

std::string MakeLegacyToken(const Core& core,
                            const TokenClaims& account,
                            std::string_view secret_name) {
  json::Object claims;
  claims["iss"] = kLegacyIssuer;
  claims["kubernetes.io/serviceaccount/namespace"] = account.ns;
  claims["kubernetes.io/serviceaccount/secret.name"] = secret_name;
  claims["kubernetes.io/serviceaccount/service-account.name"] = account.account;
  claims["kubernetes.io/serviceaccount/service-account.uid"] = account.account_uid;
  claims["sub"] = AccountUserName(account.ns, account.account);
  if (!account.requester.empty()) claims[kRequesterExtra] = account.requester;
  return Signed(core, claims);
}

json::Value TokenKeySet(const Core& core) {
  json::Array keys;
  if (core.options.token_key) keys.push_back(core.options.token_key->jwk());
  return json::Object{{"keys", std::move(keys)}};
}

}  // namespace swell::apiserver
