// Reviews: who am I, may I, whose token is this; and tokens for service accounts. Nothing stored.
#include "api/meta.h"
#include "apiserver/authn.h"
#include "apiserver/codec.h"
#include "apiserver/errors.h"
#include "apiserver/handlers.h"
#include "apiserver/output.h"
#include "base/strings.h"

namespace swell::apiserver {
namespace {

constexpr int64_t kDefaultTokenSeconds = 3600;
constexpr int64_t kLeastTokenSeconds = 600;
constexpr int64_t kMostTokenSeconds = int64_t{1} << 32;

json::Array Strings(const std::vector<std::string>& texts) {
  json::Array array;
  for (const std::string& text : texts) array.emplace_back(text);
  return array;
}

std::vector<std::string> ReadStrings(const json::Value& value, json::Path path) {
  std::vector<std::string> texts;
  for (const json::Value& one : json::GetArray(value, path)) {
    if (one.is_string()) texts.emplace_back(json::View(one.get_string()));
  }
  return texts;
}

json::Object UserObject(const api::UserInfo& user) {
  json::Object object;
  object["username"] = user.name;
  if (!user.uid.empty()) object["uid"] = user.uid;
  object["groups"] = Strings(user.groups);
  return object;
}

AccessAttributes AttributesFrom(const json::Value& review) {
  AccessAttributes attributes;
  const json::Value* resource = json::Find(review, {"spec", "resourceAttributes"});
  if (resource != nullptr && resource->is_object()) {
    attributes.verb = json::GetString(*resource, {"verb"});
    attributes.group = json::GetString(*resource, {"group"});
    attributes.version = json::GetString(*resource, {"version"});
    attributes.resource = json::GetString(*resource, {"resource"});
    attributes.subresource = json::GetString(*resource, {"subresource"});
    attributes.ns = json::GetString(*resource, {"namespace"});
    attributes.name = json::GetString(*resource, {"name"});
    return attributes;
  }
  attributes.verb = json::GetString(review, {"spec", "nonResourceAttributes", "verb"});
  attributes.path = json::GetString(review, {"spec", "nonResourceAttributes", "path"});
  return attributes;
}

Status CheckAccessSpec(const api::KindInfo& kind, const json::Value& review) {
  const bool resource = json::Find(review, {"spec", "resourceAttributes"}) != nullptr;
  const bool path = json::Find(review, {"spec", "nonResourceAttributes"}) != nullptr;
  if (resource != path) return Status::Ok();
  return InvalidError(
      kind, "",
      {InvalidValue("spec.resourceAttributes", "",
                    resource ? "cannot be specified in combination with nonResourceAttributes"
                             : "exactly one of nonResourceAttributes or resourceAttributes must be "
                               "specified")});
}

void FillAccess(Core& core, const api::UserInfo& user, json::Value& review) {
  const AccessDecision decision = core.authorizer->Authorize(user, AttributesFrom(review));
  json::Object status;
  status["allowed"] = decision.allowed;
  if (!decision.reason.empty()) status["reason"] = decision.reason;
  json::Set(review, {"status"}, std::move(status));
}

void FillRules(Core& core, const api::UserInfo& user, json::Value& review) {
  const AccessRules rules =
      core.authorizer->RulesFor(user, std::string(json::GetString(review, {"spec", "namespace"})));
  json::Array resources;
  for (const ResourceRule& rule : rules.resources) {
    json::Object object;
    object["verbs"] = Strings(rule.verbs);
    object["apiGroups"] = Strings(rule.groups);
    object["resources"] = Strings(rule.resources);
    if (!rule.names.empty()) object["resourceNames"] = Strings(rule.names);
    resources.push_back(std::move(object));
  }
  json::Array paths;
  for (const NonResourceRule& rule : rules.non_resources) {
    json::Object object;
    object["verbs"] = Strings(rule.verbs);
    object["nonResourceURLs"] = Strings(rule.paths);
    paths.push_back(std::move(object));
  }
  json::Object status;
  status["resourceRules"] = std::move(resources);
  status["nonResourceRules"] = std::move(paths);
  status["incomplete"] = rules.incomplete;
  json::Set(review, {"status"}, std::move(status));
}

void FillToken(Core& core, json::Value& review) {
  const auto user = UserOfToken(core, json::GetString(review, {"spec", "token"}));
  json::Object status;
  if (user) {
    status["authenticated"] = true;
    status["user"] = UserObject(*user);
    status["audiences"] = json::GetArray(review, {"spec", "audiences"});
  } else {
    status["authenticated"] = false;
    status["error"] = "the token is not known to this server";
  }
  json::Set(review, {"status"}, std::move(status));
}

Status FillReview(Core& core, const Call& call, json::Value& review) {
  const std::string& kind = call.kind->gvk.kind;
  if (kind == "SelfSubjectReview") {
    json::Set(review, {"status"}, json::Object{{"userInfo", UserObject(call.user)}});
  } else if (kind == "SelfSubjectRulesReview") {
    FillRules(core, call.user, review);
  } else if (kind == "SelfSubjectAccessReview") {
    SWELL_RETURN_IF_ERROR(CheckAccessSpec(*call.kind, review));
    FillAccess(core, call.user, review);
  } else if (kind == "SubjectAccessReview" || kind == "LocalSubjectAccessReview") {
    SWELL_RETURN_IF_ERROR(CheckAccessSpec(*call.kind, review));
    api::UserInfo user;
    user.name = json::GetString(review, {"spec", "user"});
    user.uid = json::GetString(review, {"spec", "uid"});
    user.groups = ReadStrings(review, {"spec", "groups"});
    if (user.name.empty() && user.groups.empty()) {
      return InvalidError(
          *call.kind, "",
          {InvalidValue("spec.user", "", "at least one of user or group must be specified")});
    }
    FillAccess(core, user, review);
  } else if (kind == "TokenReview") {
    if (json::GetString(review, {"spec", "token"}).empty()) {
      return InvalidError(*call.kind, "", {RequiredValue("spec.token")});
    }
    FillToken(core, review);
  } else {
    return MethodNotAllowedError();
  }
  return Status::Ok();
}

}  // namespace

void HandleReview(Core& core, const CallPtr& call) {
  auto review = DecodeObject(*call, *call->kind, core.options.body_limit_bytes);
  const Status status = review.ok() ? FillReview(core, *call, *review) : review.status();
  if (!status.ok()) {
    call->Fail(status);
    return;
  }
  if (json::Find(*review, {"metadata"}) == nullptr) {
    json::Set(*review, {"metadata"}, json::Object{{"creationTimestamp", nullptr}});
  }
  RespondDocument(*call, 201, *review);
}

void HandleTokenRequest(Core& core, const CallPtr& call) {
  const auto account = core.store.Get(KeyFor(*call->storage, call->info.ns, call->info.name));
  if (!account) {
    call->Fail(NotFoundError(*call->kind, call->info.name));
    return;
  }
  auto body = DecodeBody(call->request, core.options.body_limit_bytes);
  if (!body.ok() || !body->is_object()) {
    call->Fail(body.ok() ? BadRequestError("the request body must be a TokenRequest")
                         : body.status());
    return;
  }
  if (!core.options.token_signer) {
    call->Fail(
        Status(Code::kUnavailable, "this server has no signing key for service account tokens"));
    return;
  }
  const int64_t seconds = json::GetInt(*body, {"spec", "expirationSeconds"}, kDefaultTokenSeconds);
  if (seconds < kLeastTokenSeconds || seconds > kMostTokenSeconds) {
    api::KindInfo kind;
    kind.gvk = {"authentication.k8s.io", "v1", "TokenRequest"};
    kind.plural = "tokenrequests";
    call->Fail(
        InvalidError(kind, "",
                     {InvalidValue("spec.expirationSeconds", std::to_string(seconds),
                                   seconds < kLeastTokenSeconds
                                       ? "may not specify a duration less than 10 minutes"
                                       : "may not specify a duration larger than 2^32 seconds")}));
    return;
  }
  const WallTime now = core.clock.Now();
  const WallTime expires = now + std::chrono::seconds(seconds);
  const auto audiences = ReadStrings(*body, {"spec", "audiences"});
  json::Object status;
  status["token"] = MakeServiceAccountToken(core, call->info.ns, call->info.name,
                                            account->attributes.uid, audiences, now, expires);
  status["expirationTimestamp"] = api::FormatTime(expires);
  json::Object metadata;
  metadata["name"] = call->info.name;
  metadata["namespace"] = call->info.ns;
  metadata["creationTimestamp"] = api::FormatTime(now);
  json::Object spec;
  spec["audiences"] = Strings(audiences);
  spec["expirationSeconds"] = seconds;
  spec["boundObjectRef"] = nullptr;
  json::Object answer;
  answer["kind"] = "TokenRequest";
  answer["apiVersion"] = "authentication.k8s.io/v1";
  answer["metadata"] = std::move(metadata);
  answer["spec"] = std::move(spec);
  answer["status"] = std::move(status);
  RespondDocument(*call, 201, answer);
}

}  // namespace swell::apiserver
