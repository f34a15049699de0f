// Rbac: the roles and bindings of the store as an authorizer.
//
// Roles are kept parsed and bindings are indexed by namespace and subject, so a question costs one
// lookup per group of the user and the rules found there. The index follows durable writes: who is
// told that a binding is created can use it at once.
//
// - Threads: core executor only.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kube/apiserver/access/rbac_rules.h"
#include "kube/store/store.h"

namespace swell::apiserver {

struct RoleRef {
  std::string kind;  // Role, ClusterRole
  std::string name;
};

class Rbac final : public Authorizer {
 public:
  // Loads what is stored.
  explicit Rbac(const store::Store& store);

  AccessDecision Authorize(const api::UserInfo& user,
                           const AccessAttributes& attributes) const override;
  AccessRules RulesFor(const api::UserInfo& user, const std::string& ns) const override;

  // Every rule that holds for the user in the namespace (cluster-wide ones alone when it is empty),
  // and what could not be found, "; " between.
  PolicyRules RulesOf(const api::UserInfo& user, const std::string& ns, std::string* errors) const;
  // nullptr when there is no such role. A Role is looked up in `ns`.
  std::shared_ptr<const PolicyRules> RulesOfRole(const RoleRef& ref, const std::string& ns) const;

  // A role or binding is durably there (or has changed), or gone.
  void Put(const store::Entry& entry);
  void Erase(const store::Key& key);

 private:
  using Scoped = std::pair<std::string, std::string>;  // namespace (empty: the cluster), name
  struct Subject {
    std::string id;     // how the index knows it
    std::string shown;  // `User "jane"`
  };
  struct Binding {
    RoleRef role;
    std::vector<Subject> subjects;
  };
  using Visit = std::function<bool(const Scoped& binding, const Subject&, const Binding&)>;

  // Bindings that apply to the user, the cluster's first, until `visit` says false.
  void ForEachBinding(const api::UserInfo& user, const std::string& ns, const Visit& visit) const;
  void Load(const store::Store& store, const std::string& resource);
  void Forget(const Scoped& binding);
  static Binding ReadBinding(const json::Value& object);

  std::map<Scoped, std::shared_ptr<const PolicyRules>> roles_;
  std::map<Scoped, Binding> bindings_;
  std::map<Scoped, std::set<std::string>> by_subject_;  // (namespace, subject id) → bindings
};

}  // namespace swell::apiserver
