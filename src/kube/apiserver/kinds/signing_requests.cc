// CertificateSigningRequests on their way in: who asks, who may approve and sign, and what nobody
// may ask for.
#include <algorithm>
#include <set>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/schema/field_errors.h"
#include "kube/apiserver/access/access.h"
#include "kube/apiserver/access/registered_users.h"
#include "kube/apiserver/kinds/handlers.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

constexpr std::string_view kClientSigner = "kubernetes.io/kube-apiserver-client";
constexpr std::string_view kMasters = "system:masters";

// By the signer's name, or by all of its domain.
bool MayUseSigner(const Admission& admission, std::string_view verb, const std::string& signer) {
  const std::string domain = StrCat(signer.substr(0, signer.find('/')), "/*");
  return std::ranges::any_of(
      std::initializer_list<std::string>{signer, domain}, [&](const std::string& name) {
        AccessAttributes attributes;
        attributes.verb = verb;
        attributes.group = admission.kind.gvk.group;
        attributes.version = "*";
        attributes.resource = "signers";
        attributes.name = name;
        return Decide(admission.core, admission.call->user, attributes).allowed;
      });
}

Status CheckSigner(const Admission& admission, std::string_view verb, const json::Value& old) {
  const std::string signer(json::GetString(old, {"spec", "signerName"}));
  if (MayUseSigner(admission, verb, signer)) return Status::Ok();
  return ForbiddenError(
      admission.kind, admission.name,
      StrCat("user not permitted to ", verb, " requests with signerName ", Quote(signer)));
}

// Kubernetes' own right of a user that may ask for nodes' certificates.
bool MayAskForNodes(const Admission& admission, const std::string& common_name) {
  const api::UserInfo& user = admission.call->user;
  if (IsNode(user) && user.name == common_name) return true;
  AccessAttributes attributes;
  attributes.verb = "create";
  attributes.group = admission.kind.gvk.group;
  attributes.version = "v1";
  attributes.resource = "certificatesigningrequests";
  attributes.subresource = "nodeclient";
  return Decide(admission.core, user, attributes).allowed;
}

// A certificate cannot be taken back, and those of masters are let in everywhere. What begins with
// `system:` is a name of the system's own.
Status CheckSubject(const Admission& admission, const json::Value& object) {
  const auto& subject_of = admission.core.options.requested_subject;
  if (!subject_of || json::GetString(object, {"spec", "signerName"}) != kClientSigner) {
    return Status::Ok();
  }
  const auto pem = Base64Decode(json::GetString(object, {"spec", "request"}));
  const auto subject = subject_of(pem.value_or(""));
  if (!subject.ok()) {
    return ForbiddenError(admission.kind, admission.name,
                          StrCat("unable to parse CSR: ", subject.status().message()));
  }
  auto refuse = [&admission](std::string_view what) {
    return ForbiddenError(admission.kind, admission.name,
                          StrCat("use of ", kClientSigner, " signer with ", what));
  };
  bool node = subject->common_name.starts_with("system:node:");
  bool system = !node && subject->common_name.starts_with("system:");
  for (const std::string& group : subject->organizations) {
    // The other one stands for a user who is registered, whatever the rights of that one.
    if (group == kMasters || UserReference::FromOrganization(group)) {
      return refuse(StrCat(group, " group is not allowed"));
    }
    node |= group == "system:nodes";
    system |= group != "system:nodes" && group.starts_with("system:");
  }
  if (node && !MayAskForNodes(admission, subject->common_name)) {
    return refuse(
        "the name or group of a node needs the right to create "
        "certificatesigningrequests/nodeclient");
  }
  if (system && !IsSystem(admission.call->user)) {
    return refuse("a name or group that begins with system: is for administrators");
  }
  return Status::Ok();
}

const json::Value* ConditionOf(const json::Value& request, std::string_view type) {
  for (const json::Value& condition : json::GetArray(request, {"status", "conditions"})) {
    if (json::GetString(condition, {"type"}) == type) return &condition;
  }
  return nullptr;
}

// What was decided stays so, one way or the other, and is decided as an approval alone.
Status CheckDecisions(const Admission& admission,
                      const json::Value& object,
                      const json::Value& old) {
  static constexpr std::string_view kConditions = "status.conditions";
  std::vector<api::FieldError> errors;
  const json::Array& conditions = json::GetArray(object, {"status", "conditions"});
  std::set<std::string_view> seen;
  for (size_t i = 0; i < conditions.size(); ++i) {
    const std::string path = api::PathIndex(kConditions, i);
    const std::string_view type = json::GetString(conditions[i], {"type"});
    const std::string_view status = json::GetString(conditions[i], {"status"});
    const bool decision = type == "Approved" || type == "Denied";
    if ((decision || type == "Failed") && status != "True") {
      errors.push_back(api::NotSupportedError(path + ".status", status, {"True"}));
    }
    if (decision && seen.contains(type == "Approved" ? "Denied" : "Approved")) {
      errors.push_back(api::InvalidText(path + ".type", type,
                                        "Approved and Denied conditions are mutually exclusive"));
    }
    seen.insert(type);
  }
  auto may_not = [&errors](std::string_view what, std::string_view type) {
    errors.push_back(api::ForbiddenError(
        std::string(kConditions),
        StrCat("updates may not ", what, " a condition of type ", Quote(type))));
  };
  for (const json::Value& before : json::GetArray(old, {"status", "conditions"})) {
    const std::string_view type = json::GetString(before, {"type"});
    if (!seen.contains(type)) may_not("remove", type);
  }
  for (const char* type : {"Approved", "Denied"}) {
    const bool added = seen.contains(type) && ConditionOf(old, type) == nullptr;
    if (added && admission.subresource != "approval") may_not("add", type);
  }
  return errors.empty() ? Status::Ok() : InvalidError(admission.kind, admission.name, errors);
}

// Times that were left out are now, or since when it is so.
void FillTimes(json::Value& object, const json::Value& old, const std::string& now) {
  json::Value* conditions = json::FindMutable(object, {"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return;
  for (json::Value& condition : conditions->get_array()) {
    const json::Value* before = ConditionOf(old, json::GetString(condition, {"type"}));
    const bool same = before != nullptr && json::GetString(*before, {"status"}) ==
                                               json::GetString(condition, {"status"});
    auto fill = [&condition](std::string_view field, std::string_view time) {
      if (json::GetString(condition, {field}).empty()) json::Set(condition, {field}, time);
    };
    fill("lastUpdateTime", now);
    fill("lastTransitionTime",
         same ? json::GetString(*before, {"lastTransitionTime"}, now) : std::string_view(now));
  }
}

// The server knows the user, whatever the request says.
Status CreateSigningRequest(Admission& admission, json::Value& object) {
  json::Value& spec = *json::FindMutable(object, {"spec"});
  for (const char* field : {"username", "uid", "groups", "extra"}) json::Remove(spec, {field});
  if (admission.call == nullptr) return Status::Ok();
  const api::UserInfo& user = admission.call->user;
  json::Set(spec, {"username"}, user.name);
  if (!user.uid.empty()) json::Set(spec, {"uid"}, user.uid);
  json::Array groups;
  for (const std::string& group : user.groups) groups.emplace_back(group);
  if (!groups.empty()) json::Set(spec, {"groups"}, std::move(groups));
  return CheckSubject(admission, object);
}

// What is asked for stays as it was asked.
Status UpdateSigningRequest(Admission& admission, json::Value& object, const json::Value& old) {
  json::Set(object, {"spec"}, *json::Find(old, {"spec"}));
  FillTimes(object, old, api::FormatTime(admission.core.clock.Now()));
  SWELL_RETURN_IF_ERROR(CheckDecisions(admission, object, old));
  if (admission.call == nullptr) return Status::Ok();
  if (admission.subresource == "approval") return CheckSigner(admission, "approve", old);
  const json::Value* now = json::Find(object, {"status"});
  const json::Value* before = json::Find(old, {"status"});
  const bool same = now != nullptr && before != nullptr ? *now == *before : now == before;
  return admission.subresource != "status" || same ? Status::Ok()
                                                   : CheckSigner(admission, "sign", old);
}

}  // namespace

void RegisterSigningRequests(Core& core) {
  core.hooks.Add("certificatesigningrequests.certificates.k8s.io",
                 {.create = CreateSigningRequest, .update = UpdateSigningRequest});
}

}  // namespace swell::apiserver
