// Reviews: who am I, may I, whose token is this. Nothing is stored.
#include <algorithm>

#include "base/strings.h"
#include "json/texts.h"
#include "kube/api/meta/meta.h"
#include "kube/api/schema/field_errors.h"
#include "kube/apiserver/access/access.h"
#include "kube/apiserver/access/authn.h"
#include "kube/apiserver/access/handlers.h"
#include "kube/apiserver/codec.h"
#include "kube/apiserver/print/output.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

json::Object UserObject(const api::UserInfo& user) {
  json::Object object;
  object["username"] = user.name;
  if (!user.uid.empty()) object["uid"] = user.uid;
  object["groups"] = json::TextArray(user.groups);
  if (user.extra.empty()) return object;
  json::Object extra;
  for (const auto& [key, values] : user.extra) extra[key] = json::TextArray(values);
  object["extra"] = std::move(extra);
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

std::vector<api::FieldError> AccessFaults(const json::Value& review) {
  const bool resource = json::Find(review, {"spec", "resourceAttributes"}) != nullptr;
  const bool path = json::Find(review, {"spec", "nonResourceAttributes"}) != nullptr;
  if (resource && path) {
    const auto text = [&review](const char* key) {
      return Quote(json::GetString(review, {"spec", "nonResourceAttributes", key}));
    };
    return {{"FieldValueInvalid", "spec.nonResourceAttributes",
             StrCat("Invalid value: authorization.NonResourceAttributes{Path:", text("path"),
                    ", Verb:", text("verb"),
                    "}: cannot be specified in combination with resourceAttributes")}};
  }
  if (resource || path) return {};
  return {api::InvalidError("spec.resourceAttributes", json::Value(),
                            "exactly one of nonResourceAttributes or resourceAttributes must be "
                            "specified")};
}

// A review of what somebody else may do.
Status CheckSubjectReview(const Call& call, const json::Value& review, const api::UserInfo& user) {
  std::vector<api::FieldError> faults = AccessFaults(review);
  if (user.name.empty() && user.groups.empty()) {
    faults.push_back(
        InvalidValue("spec.user", "", "at least one of user or group must be specified"));
  }
  const std::string_view ns = json::GetString(review, {"spec", "resourceAttributes", "namespace"});
  if (call.kind->gvk.kind == "LocalSubjectAccessReview" && ns != call.info.ns) {
    faults.push_back(
        InvalidValue("spec.resourceAttributes.namespace", ns, "must match metadata.namespace"));
  }
  return faults.empty() ? Status::Ok() : InvalidError(*call.kind, "", faults);
}

void FillAccess(Core& core, const api::UserInfo& user, json::Value& review) {
  const AccessDecision decision = DecideWithReason(core, user, AttributesFrom(review));
  json::Object status;
  status["allowed"] = decision.allowed;
  if (!decision.reason.empty()) status["reason"] = decision.reason;
  json::Set(review, {"status"}, std::move(status));
}

void FillRules(Core& core, const api::UserInfo& user, json::Value& review) {
  const AccessRules rules = core.Get<AccessControl>().authorizer->RulesFor(
      user, std::string(json::GetString(review, {"spec", "namespace"})));
  json::Array resources;
  for (const ResourceRule& rule : rules.resources) {
    json::Object object;
    object["verbs"] = json::TextArray(rule.verbs);
    object["apiGroups"] = json::TextArray(rule.groups);
    object["resources"] = json::TextArray(rule.resources);
    if (!rule.names.empty()) object["resourceNames"] = json::TextArray(rule.names);
    resources.push_back(std::move(object));
  }
  json::Array paths;
  for (const NonResourceRule& rule : rules.non_resources) {
    json::Object object;
    object["verbs"] = json::TextArray(rule.verbs);
    object["nonResourceURLs"] = json::TextArray(rule.paths);
    paths.push_back(std::move(object));
  }
  json::Object status;
  status["resourceRules"] = std::move(resources);
  status["nonResourceRules"] = std::move(paths);
  status["incomplete"] = rules.incomplete;
  if (!rules.error.empty()) status["evaluationError"] = rules.error;
  json::Set(review, {"status"}, std::move(status));
}

void FillToken(Core& core, json::Value& review) {
  const auto found = UserOfToken(core, json::GetString(review, {"spec", "token"}));
  json::Object status;
  status["user"] = json::Object();
  if (!found.ok()) {
    const bool unknown = found.status().code() == Code::kNotFound;
    status["error"] = unknown ? "invalid bearer token"
                              : StrCat("[invalid bearer token, ", found.status().message(), "]");
    json::Set(review, {"status"}, std::move(status));
    return;
  }
  std::vector<std::string> wanted = json::Texts(json::GetArray(review, {"spec", "audiences"}));
  const bool asked = !wanted.empty();
  if (!asked) wanted.emplace_back(kTokenIssuer);
  std::erase_if(wanted, [&found](const std::string& one) {
    return std::find(found->audiences.begin(), found->audiences.end(), one) ==
           found->audiences.end();
  });
  if (wanted.empty()) {
    status["error"] = "[invalid bearer token, the token is not meant for these audiences]";
  } else {
    status["authenticated"] = true;
    status["user"] = UserObject(found->user);
    status["audiences"] = json::TextArray(wanted);
  }
  json::Set(review, {"status"}, std::move(status));
}

Status FillReview(Core& core, const Call& call, json::Value& review) {
  const std::string& kind = call.kind->gvk.kind;
  if (kind == "SelfSubjectReview") {
    json::Set(review, {"status"}, json::Object{{"userInfo", UserObject(call.user)}});
  } else if (kind == "SelfSubjectRulesReview") {
    if (json::GetString(review, {"spec", "namespace"}).empty()) {
      return BadRequestError("namespace is required for this type: ");
    }
    FillRules(core, call.user, review);
  } else if (kind == "SelfSubjectAccessReview") {
    const std::vector<api::FieldError> faults = AccessFaults(review);
    if (!faults.empty()) return InvalidError(*call.kind, "", faults);
    FillAccess(core, call.user, review);
  } else if (kind == "SubjectAccessReview" || kind == "LocalSubjectAccessReview") {
    api::UserInfo user;
    user.name = json::GetString(review, {"spec", "user"});
    user.uid = json::GetString(review, {"spec", "uid"});
    user.groups = json::Texts(json::GetArray(review, {"spec", "groups"}));
    SWELL_RETURN_IF_ERROR(CheckSubjectReview(call, review, user));
    FillAccess(core, user, review);
  } else if (kind == "TokenReview") {
    if (json::GetString(review, {"spec", "token"}).empty()) {
      return BadRequestError("token is required for TokenReview in authentication");
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

}  // namespace swell::apiserver
