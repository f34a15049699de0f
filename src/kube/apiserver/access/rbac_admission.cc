// Roles, bindings and members of projects on their way in: nobody gives more than they hold
// themselves.
#include <algorithm>
#include <set>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/project.h"
#include "kube/apiserver/access/access.h"
#include "kube/apiserver/access/project_parent.h"
#include "kube/apiserver/access/rbac.h"
#include "kube/apiserver/core.h"
#include "kube/apiserver/request/errors.h"

namespace swell::apiserver {
namespace {

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";

// Whether the server trusts this writer anyway: itself, admins, and everybody where RBAC is off.
bool Trusted(const Admission& admission) {
  return admission.call == nullptr || admission.core.Get<AccessControl>().rbac == nullptr ||
         IsMaster(admission.call->user);
}

bool Has(const Admission& admission,
         std::string_view verb,
         std::string_view resource,
         std::string_view name,
         const std::string& ns) {
  AccessAttributes attributes;
  attributes.verb = verb;
  attributes.group = kGroup;
  attributes.version = "*";
  attributes.resource = resource;
  attributes.ns = ns;
  attributes.name = name;
  return admission.core.Get<AccessControl>()
      .authorizer->Authorize(admission.call->user, attributes)
      .allowed;
}

Status CheckHeld(const Admission& admission, const PolicyRules& wanted, const std::string& ns) {
  const api::UserInfo& user = admission.call->user;
  std::string errors;
  const PolicyRules held = admission.core.Get<AccessControl>().rbac->RulesOf(user, ns, &errors);
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
  if (Has(admission, "escalate", admission.kind.plural, admission.call->info.name, admission.ns)) {
    return Status::Ok();
  }
  SWELL_RETURN_IF_ERROR(CheckHeld(admission, ReadRules(role), admission.ns));
  if (!aggregates || CheckHeld(admission, Everything(), admission.ns).ok()) return Status::Ok();
  return ForbiddenError(admission.kind, admission.name,
                        "must have cluster-admin privileges to use the aggregationRule");
}

// The user who grants the role in `ns` must have its rights there, or the right to bind it.
Status CheckGiven(const Admission& admission, const RoleRef& ref, const std::string& ns) {
  const std::string plural = ref.kind == "Role" ? "roles" : "clusterroles";
  if (Has(admission, "bind", plural, ref.name, ns)) return Status::Ok();
  const auto rules = admission.core.Get<AccessControl>().rbac->RulesOfRole(ref, ns);
  if (rules) return CheckHeld(admission, *rules, ns);
  // The rules of roleRef itself refuse other kinds later.
  if (ref.kind != "Role" && ref.kind != "ClusterRole") return Status::Ok();
  const auto kind = admission.core.scheme->FindResource(std::string(kGroup), "v1", plural);
  return kind ? NotFoundError(*kind, ref.name) : NoSuchResourceError();
}

Status CheckBinding(const Admission& admission, const json::Value& binding) {
  if (Trusted(admission)) return Status::Ok();
  return CheckGiven(admission,
                    {std::string(json::GetString(binding, {"roleRef", "kind"})),
                     std::string(json::GetString(binding, {"roleRef", "name"}))},
                    admission.ns);
}

// A controller binds members' roles in the project's namespace, so the user who names a member
// grants the role.
Status CheckMembers(const Admission& admission,
                    const json::Value& project,
                    const json::Value* old) {
  if (Trusted(admission)) return Status::Ok();
  const std::string ns(api::NamespaceOfProject(project));
  // In another namespace all of them are new.
  const bool stays = old != nullptr && api::NamespaceOfProject(*old) == ns;
  const json::Array known = stays ? json::GetArray(*old, {"spec", "members"}) : json::Array{};
  std::set<std::string_view> given;
  for (const json::Value& member : json::GetArray(project, {"spec", "members"})) {
    const bool had = std::any_of(known.begin(), known.end(), [&member](const json::Value& one) {
      return json::Equal(one, member);
    });
    if (!had) given.insert(api::ProjectMember(member).ClusterRole());
  }
  for (std::string_view role : given) {
    SWELL_RETURN_IF_ERROR(CheckGiven(admission, {"ClusterRole", std::string(role)}, ns));
  }
  return Status::Ok();
}

// What a project allows beyond the usual is given by users that may do it themselves.
Status CheckSecurity(const Admission& admission,
                     const json::Value& project,
                     const json::Value* old) {
  if (Trusted(admission)) return Status::Ok();
  const std::string ns(api::NamespaceOfProject(project));
  const bool moved = old != nullptr && api::NamespaceOfProject(*old) != ns;
  auto given = [&](const char* name) {
    const json::Value* now = json::Find(project, {"spec", name});
    const json::Value* before = old != nullptr ? json::Find(*old, {"spec", name}) : nullptr;
    if (now == nullptr) return false;
    return moved || before == nullptr || !json::Equal(*now, *before);
  };
  const bool level =
      given("podSecurity") && json::GetString(project, {"spec", "podSecurity"}) == "privileged";
  const bool paths =
      given("allowedHostPaths") && !json::GetArray(project, {"spec", "allowedHostPaths"}).empty();
  if (!level && !paths) return Status::Ok();
  if (MayExceedPodSecurity(admission.core, admission.call->user, ns)) return Status::Ok();
  return ForbiddenError(
      admission.kind, admission.name,
      StrCat(
          level ? R"(spec.podSecurity: "privileged")" : "spec.allowedHostPaths", ": User ",
          Quote(admission.call->user.name),
          R"( needs the right to use podsecuritylevels.swell.dev "privileged" in the namespace )",
          Quote(ns)));
}

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

Status CreateProject(Admission& admission, json::Value& object) {
  SWELL_RETURN_IF_ERROR(CheckSecurity(admission, object, nullptr));
  SWELL_RETURN_IF_ERROR(CheckParent(admission, object, nullptr));
  return CheckMembers(admission, object, nullptr);
}

Status UpdateProject(Admission& admission, json::Value& object, const json::Value& old) {
  SWELL_RETURN_IF_ERROR(CheckSecurity(admission, object, &old));
  SWELL_RETURN_IF_ERROR(CheckParent(admission, object, &old));
  return CheckMembers(admission, object, &old);
}

void RbacWritten(Core& core, store::EventType type, const store::EntryPtr& entry, bool ok) {
  Rbac* const rbac = core.Get<AccessControl>().rbac.get();
  if (!ok || rbac == nullptr) return;
  if (type == store::EventType::kDeleted) {
    rbac->Erase(entry->key);
  } else {
    rbac->Put(*entry);
  }
}

}  // namespace

void RegisterAccess(Core& core) {
  auto access = std::make_unique<AccessControl>();
  if (core.options.rbac) access->rbac = std::make_shared<Rbac>(core.store);
  access->authorizer = access->rbac ? access->rbac : MakeAllowAuthenticated();
  core.Add(std::move(access));
  const ResourceHooks roles{
      .create = CreateRole, .update = UpdateRole, .written = RbacWritten, .create_on_update = true};
  const ResourceHooks bindings{.create = CreateRoleBinding,
                               .update = UpdateRoleBinding,
                               .written = RbacWritten,
                               .create_on_update = true};
  core.hooks.Add("clusterroles.rbac.authorization.k8s.io", roles);
  core.hooks.Add("roles.rbac.authorization.k8s.io", roles);
  core.hooks.Add("clusterrolebindings.rbac.authorization.k8s.io", bindings);
  core.hooks.Add("rolebindings.rbac.authorization.k8s.io", bindings);
  core.hooks.Add("projects.swell.dev", {.create = CreateProject,
                                        .update = UpdateProject,
                                        .generation = true,
                                        .needs_version = true});
}

}  // namespace swell::apiserver
