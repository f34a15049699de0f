// Tokens for service accounts: POST serviceaccounts/x/token, and secrets that hold one.
#include <algorithm>

#include "base/host_port.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/apiserver/access/account_tokens.h"
#include "kube/apiserver/access/handlers.h"
#include "kube/apiserver/access/node_restriction.h"
#include "kube/apiserver/access/registered_users.h"
#include "kube/apiserver/access/submitter.h"
#include "kube/apiserver/codec.h"
#include "kube/apiserver/print/output.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

constexpr int64_t kDefaultSeconds = 3600;
constexpr int64_t kLeastSeconds = 600;
constexpr int64_t kMostSeconds = int64_t{1} << 32;
constexpr std::string_view kAccountName = "kubernetes.io/service-account.name";
constexpr std::string_view kAccountUid = "kubernetes.io/service-account.uid";

Status CheckSeconds(int64_t seconds) {
  if (seconds >= kLeastSeconds && seconds <= kMostSeconds) return Status::Ok();
  api::KindInfo kind;
  kind.gvk = {"authentication.k8s.io", "v1", "TokenRequest"};
  kind.plural = "tokenrequests";
  return InvalidError(kind, "",
                      {{"FieldValueInvalid", "spec.expirationSeconds",
                        StrCat("Invalid value: ", seconds,
                               seconds < kLeastSeconds
                                   ? ": may not specify a duration less than 10 minutes"
                                   : ": may not specify a duration larger than 2^32 seconds")}});
}

// The pod or secret that the token is to die with.
Status ReadBoundObject(Core& core, const json::Value& request, TokenClaims& claims) {
  const json::Value* ref = json::Find(request, {"spec", "boundObjectRef"});
  if (ref == nullptr || ref->is_null()) return Status::Ok();
  claims.bound_kind = json::GetString(*ref, {"kind"});
  claims.bound_name = json::GetString(*ref, {"name"});
  if (claims.bound_kind != "Pod" && claims.bound_kind != "Secret") {
    const std::string_view version = json::GetString(*ref, {"apiVersion"}, "v1");
    return BadRequestError(StrCat("cannot bind token to object of type ",
                                  version.find('/') == std::string_view::npos ? "/" : "", version,
                                  ", Kind=", claims.bound_kind));
  }
  const std::string plural = claims.bound_kind == "Pod" ? "pods" : "secrets";
  const auto kind = core.scheme->FindResource("", "v1", plural);
  if (!kind) return NoSuchResourceError();
  const auto entry = core.store.Get(KeyFor(*kind, claims.ns, claims.bound_name));
  if (!entry) return NotFoundError(*kind, claims.bound_name);
  if (plural == "pods" &&
      json::GetString(*entry->Parsed(), {"spec", "serviceAccountName"}) != claims.account) {
    return BadRequestError(StrCat("cannot bind token for serviceaccount ", Quote(claims.account),
                                  " to pod running with different serviceaccount name."));
  }
  const std::string_view uid = json::GetString(*ref, {"uid"});
  if (!uid.empty() && uid != entry->attributes.uid) {
    return ConflictError(*kind, claims.bound_name,
                         StrCat("the UID in the bound object reference (", uid,
                                ") does not match the UID in record. The object might have been "
                                "deleted and then recreated"));
  }
  claims.bound_uid = entry->attributes.uid;
  return Status::Ok();
}

// The registered user for whom the call acts, also through an account.
std::string RequesterOf(const Core& core, const Call& call) {
  const std::string name = SubmitterOf(core, call).value_or("");
  const auto reference = name.empty() ? std::nullopt : ReferenceOfUser(core, name);
  return reference ? reference->Organization() : "";
}

Result<TokenClaims> ReadClaims(Core& core, Call& call, const json::Value& request) {
  TokenClaims claims;
  claims.ns = call.info.ns;
  claims.account = call.info.name;
  const auto account = core.store.Get(KeyFor(*call.storage, claims.ns, claims.account));
  if (!account) return NotFoundError(*call.kind, claims.account);
  if (!core.options.token_key) {
    return Status(Code::kUnavailable, "this server has no signing key for service account tokens");
  }
  claims.account_uid = account->attributes.uid;
  const int64_t seconds = json::GetInt(request, {"spec", "expirationSeconds"}, kDefaultSeconds);
  SWELL_RETURN_IF_ERROR(CheckSeconds(seconds));
  SWELL_RETURN_IF_ERROR(ReadBoundObject(core, request, claims));
  SWELL_RETURN_IF_ERROR(
      CheckNodeToken(core, call, claims.bound_kind == "Pod" ? claims.bound_name : ""));
  for (const json::Value& audience : json::GetArray(request, {"spec", "audiences"})) {
    if (audience.is_string()) claims.audiences.emplace_back(json::View(audience.get_string()));
  }
  if (claims.audiences.empty()) claims.audiences.emplace_back(kTokenIssuer);
  claims.submitter = SubmitterOf(core, call).value_or("");
  claims.requester = RequesterOf(core, call);
  claims.now = core.clock.Now();
  // As kube-apiserver does it: a longer life is cut, and the answer says when the token expires.
  claims.expires =
      claims.now + std::min<Duration>(std::chrono::seconds(seconds), core.options.token_life_max);
  if (claims.expires < claims.now + std::chrono::seconds(seconds)) {
    call.AddWarning(StrCat(
        "requested expiration of ", seconds,
        " seconds is longer than the maximum; the token expires after ",
        std::chrono::duration_cast<std::chrono::seconds>(core.options.token_life_max).count(),
        " seconds"));
  }
  return claims;
}

json::Value AnswerOf(Core& core, const json::Value& request, const TokenClaims& claims) {
  json::Value answer = request;
  json::Set(answer, {"apiVersion"}, "authentication.k8s.io/v1");
  json::Set(answer, {"kind"}, "TokenRequest");
  json::Set(answer, {"metadata", "name"}, claims.account);
  json::Set(answer, {"metadata", "namespace"}, claims.ns);
  json::Set(answer, {"metadata", "creationTimestamp"}, api::FormatTime(claims.now));
  json::Array audiences;
  for (const std::string& one : claims.audiences) audiences.emplace_back(one);
  json::Set(answer, {"spec", "audiences"}, std::move(audiences));
  json::Set(answer, {"spec", "expirationSeconds"},
            json::Value((claims.expires - claims.now) / std::chrono::seconds(1)));
  if (claims.bound_kind.empty()) json::Set(answer, {"spec", "boundObjectRef"}, json::Value());
  json::Set(answer, {"status"},
            json::Object{{"token", MakeBoundToken(core, claims)},
                         {"expirationTimestamp", api::FormatTime(claims.expires)}});
  return answer;
}

}  // namespace

void HandleTokenRequest(Core& core, const CallPtr& call) {
  auto request = DecodeBody(call->request, core.options.body_limit_bytes);
  if (!request.ok() || !request->is_object()) {
    call->Fail(request.ok() ? BadRequestError("the request body must be a TokenRequest")
                            : request.status());
    return;
  }
  const auto claims = ReadClaims(core, *call, *request);
  if (!claims.ok()) {
    call->Fail(claims.status());
    return;
  }
  RespondDocument(*call, 201, AnswerOf(core, *request, *claims));
}

// GET /.well-known/openid-configuration and /openid/v1/jwks, with which others can verify tokens.
bool HandleIssuerDiscovery(Core& core, Call& call) {
  const std::string& path = call.request.path;
  if (path == "/openid/v1/jwks") {
    RespondDocument(call, 200, TokenKeySet(core));
    return true;
  }
  if (path != "/.well-known/openid-configuration" || !core.options.token_key) return false;
  RespondDocument(
      call, 200,
      json::Object{
          {"issuer", kTokenIssuer},
          {"jwks_uri", StrCat("https://", Bracketed(core.options.advertise_address), ":",
                              core.options.advertise_port, "/openid/v1/jwks")},
          {"response_types_supported", json::Array{"id_token"}},
          {"subject_types_supported", json::Array{"public"}},
          {"id_token_signing_alg_values_supported",
           json::Array{json::Value(json::GetString(core.options.token_key->jwk(), {"alg"}))}}});
  return true;
}

void FillAccountSecret(Admission& admission, json::Value& secret) {
  Core& core = admission.core;
  if (!core.options.token_key ||
      json::GetString(secret, {"type"}) != "kubernetes.io/service-account-token" ||
      !json::GetString(secret, {"data", "token"}).empty()) {
    return;
  }
  TokenClaims account;
  account.ns = admission.ns;
  account.account = api::Annotation(secret, kAccountName);
  const auto entry = core.store.Latest({"serviceaccounts", account.ns, account.account});
  if (!entry) return;
  const std::string_view uid = api::Annotation(secret, kAccountUid);
  if (!uid.empty() && uid != entry->attributes.uid) return;
  account.account_uid = entry->attributes.uid;
  if (admission.call != nullptr) account.requester = RequesterOf(core, *admission.call);
  json::Set(secret, {"metadata", "annotations", kAccountUid}, account.account_uid);
  json::Set(secret, {"data", "token"},
            Base64Encode(MakeLegacyToken(core, account, admission.name)));
  json::Set(secret, {"data", "namespace"}, Base64Encode(account.ns));
  if (!core.options.ca_pem.empty()) {
    json::Set(secret, {"data", "ca.crt"}, Base64Encode(core.options.ca_pem));
  }
}

}  // namespace swell::apiserver
