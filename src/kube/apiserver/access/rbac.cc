#include "kube/apiserver/access/rbac.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::apiserver {
namespace {

constexpr std::string_view kRoles = "roles.rbac.authorization.k8s.io";
constexpr std::string_view kClusterRoles = "clusterroles.rbac.authorization.k8s.io";
constexpr std::string_view kBindings = "rolebindings.rbac.authorization.k8s.io";
constexpr std::string_view kClusterBindings = "clusterrolebindings.rbac.authorization.k8s.io";
constexpr std::string_view kAccountPrefix = "system:serviceaccount:";

std::string UserId(std::string_view name) { return StrCat("u", name); }
std::string GroupId(std::string_view name) { return StrCat("g", name); }

bool IsRole(std::string_view resource) { return resource == kRoles || resource == kClusterRoles; }
bool IsBinding(std::string_view resource) {
  return resource == kBindings || resource == kClusterBindings;
}

std::string NotFound(const RoleRef& ref) {
  return StrCat(ToLower(ref.kind), ".rbac.authorization.k8s.io ", Quote(ref.name), " not found");
}

}  // namespace

Rbac::Rbac(const store::Store& store) {
  for (std::string_view resource : {kRoles, kClusterRoles, kBindings, kClusterBindings}) {
    Load(store, std::string(resource));
  }
}

void Rbac::Load(const store::Store& store, const std::string& resource) {
  const auto listing = store.List(resource, "");
  if (!listing.ok()) return;
  for (const store::EntryPtr& entry : listing->entries) Put(*entry);
}

Rbac::Binding Rbac::ReadBinding(const json::Value& object) {
  Binding binding;
  binding.role.kind = json::GetString(object, {"roleRef", "kind"});
  binding.role.name = json::GetString(object, {"roleRef", "name"});
  for (const json::Value& subject : json::GetArray(object, {"subjects"})) {
    const std::string_view kind = json::GetString(subject, {"kind"});
    const std::string_view name = json::GetString(subject, {"name"});
    Subject one;
    std::string shown_name(name);
    if (kind == "User") {
      one.id = UserId(name);
    } else if (kind == "Group") {
      one.id = GroupId(name);
    } else if (kind == "ServiceAccount") {
      const std::string_view ns = json::GetString(subject, {"namespace"}, api::Namespace(object));
      if (ns.empty()) continue;
      one.id = UserId(StrCat(kAccountPrefix, ns, ":", name));
      shown_name = StrCat(name, "/", ns);
    } else {
      continue;
    }
    one.shown = StrCat(kind, " ", Quote(shown_name));
    binding.subjects.push_back(std::move(one));
  }
  return binding;
}

void Rbac::Put(const store::Entry& entry) {
  const Scoped where{entry.key.ns, entry.key.name};
  if (IsRole(entry.key.resource)) {
    roles_[where] = std::make_shared<const PolicyRules>(ReadRules(*entry.Parsed()));
  } else if (IsBinding(entry.key.resource)) {
    Forget(where);
    Binding binding = ReadBinding(*entry.Parsed());
    for (const Subject& subject : binding.subjects) {
      by_subject_[{where.first, subject.id}].insert(where.second);
    }
    bindings_[where] = std::move(binding);
  }
}

void Rbac::Erase(const store::Key& key) {
  if (IsRole(key.resource)) roles_.erase({key.ns, key.name});
  if (IsBinding(key.resource)) Forget({key.ns, key.name});
}

void Rbac::Forget(const Scoped& binding) {
  const auto found = bindings_.find(binding);
  if (found == bindings_.end()) return;
  for (const Subject& subject : found->second.subjects) {
    const auto names = by_subject_.find({binding.first, subject.id});
    if (names == by_subject_.end()) continue;
    names->second.erase(binding.second);
    if (names->second.empty()) by_subject_.erase(names);
  }
  bindings_.erase(found);
}

void Rbac::ForEachBinding(const api::UserInfo& user,
                          const std::string& ns,
                          const Visit& visit) const {
  std::vector<std::string> ids{UserId(user.name)};
  for (const std::string& group : user.groups) ids.push_back(GroupId(group));
  std::vector<std::string> scopes{""};
  if (!ns.empty()) scopes.push_back(ns);
  for (const std::string& scope : scopes) {
    std::set<std::string> seen;
    for (const std::string& id : ids) {
      const auto names = by_subject_.find({scope, id});
      if (names == by_subject_.end()) continue;
      for (const std::string& name : names->second) {
        if (!seen.insert(name).second) continue;
        const Scoped where{scope, name};
        const Binding& binding = bindings_.at(where);
        const auto subject = std::find_if(binding.subjects.begin(), binding.subjects.end(),
                                          [&id](const Subject& one) { return one.id == id; });
        if (!visit(where, *subject, binding)) return;
      }
    }
  }
}

std::shared_ptr<const PolicyRules> Rbac::RulesOfRole(const RoleRef& ref,
                                                     const std::string& ns) const {
  if (ref.kind != "Role" && ref.kind != "ClusterRole") return nullptr;
  const auto found = roles_.find({ref.kind == "Role" ? ns : std::string(), ref.name});
  // A Role of no namespace would be a ClusterRole's entry.
  if (found == roles_.end() || (ref.kind == "Role" && ns.empty())) return nullptr;
  return found->second;
}

AccessDecision Rbac::Authorize(const api::UserInfo& user,
                               const AccessAttributes& attributes) const {
  AccessDecision decision;
  std::vector<std::string> errors;
  ForEachBinding(
      user, attributes.ns,
      [&](const Scoped& where, const Subject& subject, const Binding& binding) {
        const auto rules = RulesOfRole(binding.role, where.first);
        if (!rules) {
          errors.push_back(NotFound(binding.role));
          return true;
        }
        decision.allowed =
            std::any_of(rules->begin(), rules->end(),
                        [&attributes](const auto& rule) { return Allows(rule, attributes); });
        if (!decision.allowed) return true;
        decision.reason =
            StrCat("RBAC: allowed by ",
                   where.first.empty()
                       ? StrCat("ClusterRoleBinding ", Quote(where.second))
                       : StrCat("RoleBinding ", Quote(StrCat(where.second, "/", where.first))),
                   " of ", binding.role.kind, " ", Quote(binding.role.name), " to ", subject.shown);
        return false;
      });
  if (decision.allowed || errors.empty()) return decision;
  decision.reason =
      errors.size() == 1 ? StrCat("RBAC: ", errors[0]) : StrCat("RBAC: [", Join(errors, ", "), "]");
  return decision;
}

PolicyRules Rbac::RulesOf(const api::UserInfo& user,
                          const std::string& ns,
                          std::string* errors) const {
  PolicyRules all;
  ForEachBinding(user, ns, [&](const Scoped& where, const Subject&, const Binding& binding) {
    const auto rules = RulesOfRole(binding.role, where.first);
    if (rules) {
      all.insert(all.end(), rules->begin(), rules->end());
    } else if (errors != nullptr) {
      *errors += StrCat(errors->empty() ? "" : ", ", NotFound(binding.role));
    }
    return true;
  });
  return all;
}

AccessRules Rbac::RulesFor(const api::UserInfo& user, const std::string& ns) const {
  AccessRules answer;
  for (const PolicyRule& rule : RulesOf(user, ns, &answer.error)) {
    if (!rule.resources.empty()) {
      answer.resources.push_back({rule.verbs, rule.groups, rule.resources, rule.names});
    }
    if (!rule.paths.empty()) answer.non_resources.push_back({rule.verbs, rule.paths});
  }
  answer.incomplete = !answer.error.empty();
  return answer;
}

}  // namespace swell::apiserver
