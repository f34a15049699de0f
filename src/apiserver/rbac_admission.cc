// Roles and bindings on their way in: nobody gives more than they hold themselves.
#include "api/meta.h"
#include "apiserver/access.h"
#include "apiserver/errors.h"
#include "apiserver/hooks.h"
#include "apiserver/rbac.h"
#include "base/strings.h"

namespace swell::apiserver {
namespace {

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";

// Whether the server trusts this writer anyway: itself, admins, and everybody where RBAC is off.
bool Trusted(const Admission& admission) {
  return admission.call == nullptr || admission.core.rbac == nullptr ||
         IsMaster(admission.call->user);
}

bool Has(const Admission& admission,
         std::string_view verb,
         std::string_view resource,
         std::string_view name) {
  AccessAttributes attributes;
  attributes.verb = verb;
  attributes.group = kGroup;
  attributes.version = "*";
  attributes.resource = resource;
  attributes.ns = admission.ns;
  attributes.name = name;
  return admission.core.authorizer->Authorize(admission.call->user, attributes).allowed;
}

Status CheckHeld(const Admission& admission, const PolicyRules& wanted) {
  const api::UserInfo& user = admission.call->user;
  std::string errors;
  const PolicyRules held = admission.core.rbac->RulesOf(user, admission.ns, &errors);
  const PolicyRules missing = Uncovered(held, wanted);
  if (missing.empty()) return Status::Ok();
  std::string groups;
  for (const std::string& group : user.groups) {
    groups += StrCat(groups.empty() ? "" : " ", Quote(group));
  }
  return ForbiddenError(
      admission.kind, admission.name,
      StrCat("user ", Quote(user.name), " (groups=[", groups,
             "]) is attempting to grant RBAC permissions not currently held:\n", Describe(missing),
             errors.empty() ? "" : StrCat("; resolution errors: [", errors, "]")));
}

bool Aggregates(const json::Value& role) {
  return !json::GetArray(role, {"aggregationRule", "clusterRoleSelectors"}).empty();
}

const PolicyRules& Everything() {
  static const PolicyRules everything{{{"*"}, {"*"}, {"*"}, {}, {}}, {{"*"}, {}, {}, {}, {"*"}}};
  return everything;
}

// Owner references and finalizers are the garbage collector's business, not anybody's rights.
bool SameButForGc(json::Value object, json::Value old) {
  for (json::Value* one : {&object, &old}) {
    for (const char* field :
         {"ownerReferences", "finalizers", "managedFields", "resourceVersion"}) {
      json::Remove(*one, {"metadata", field});
    }
  }
  return json::Equal(object, old);
}

Status CheckRole(const Admission& admission, const json::Value& role, bool aggregates) {
  if (Trusted(admission)) return Status::Ok();
  if (Has(admission, "escalate", admission.kind.plural, admission.call->info.name)) {
    return Status::Ok();
  }
  SWELL_RETURN_IF_ERROR(CheckHeld(admission, ReadRules(role)));
  if (!aggregates || CheckHeld(admission, Everything()).ok()) return Status::Ok();
  return ForbiddenError(admission.kind, admission.name,
                        "must have cluster-admin privileges to use the aggregationRule");
}

Status CheckBinding(const Admission& admission, const json::Value& binding) {
  if (Trusted(admission)) return Status::Ok();
  const RoleRef ref{std::string(json::GetString(binding, {"roleRef", "kind"})),
                    std::string(json::GetString(binding, {"roleRef", "name"}))};
  const std::string plural = ref.kind == "Role" ? "roles" : "clusterroles";
  if (Has(admission, "bind", plural, ref.name)) return Status::Ok();
  const auto rules = admission.core.rbac->RulesOfRole(ref, admission.ns);
  if (rules) return CheckHeld(admission, *rules);
  // The rules of roleRef itself refuse other kinds later.
  if (ref.kind != "Role" && ref.kind != "ClusterRole") return Status::Ok();
  const auto kind = admission.core.scheme->FindResource(std::string(kGroup), "v1", plural);
  return kind ? NotFoundError(*kind, ref.name) : NoSuchResourceError();
}

}  // namespace

Status CreateRole(Admission& admission, json::Value& object) {
  return CheckRole(admission, object, Aggregates(object));
}

Status UpdateRole(Admission& admission, json::Value& object, const json::Value& old) {
  if (SameButForGc(object, old)) return Status::Ok();
  return CheckRole(admission, object, Aggregates(object) || Aggregates(old));
}

Status CreateRoleBinding(Admission& admission, json::Value& object) {
  return CheckBinding(admission, object);
}

Status UpdateRoleBinding(Admission& admission, json::Value& object, const json::Value& old) {
  if (SameButForGc(object, old)) return Status::Ok();
  return CheckBinding(admission, object);
}

void RbacWritten(Core& core, store::EventType type, const store::EntryPtr& entry, bool ok) {
  if (!ok || core.rbac == nullptr) return;
  if (type == store::EventType::kDeleted) {
    core.rbac->Erase(entry->key);
  } else {
    core.rbac->Put(*entry);
  }
}

}  // namespace swell::apiserver
