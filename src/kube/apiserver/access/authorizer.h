// Authorizer: who may do what. RBAC is one implementation; the default lets every authenticated
// user do anything.
// - Threads: core executor only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kube/api/rest/rest.h"

namespace swell::apiserver {

// What is asked, in RBAC's words.
struct AccessAttributes {
  std::string verb;  // get, list, watch, create, update, patch, delete, deletecollection, …
  std::string group;
  std::string version;
  std::string resource;  // empty for non-resource paths
  std::string subresource;
  std::string ns;
  std::string name;
  std::string path;  // of non-resource requests
};

struct AccessDecision {
  bool allowed = false;
  std::string reason;
};

struct ResourceRule {
  std::vector<std::string> verbs, groups, resources, names;
};
struct NonResourceRule {
  std::vector<std::string> verbs, paths;
};
struct AccessRules {
  std::vector<ResourceRule> resources;
  std::vector<NonResourceRule> non_resources;
  bool incomplete = false;
  std::string error;  // why
};

class Authorizer {
 public:
  virtual ~Authorizer() = default;
  virtual AccessDecision Authorize(const api::UserInfo& user,
                                   const AccessAttributes& attributes) const = 0;
  // What the user may do in a namespace, for `kubectl auth can-i --list`.
  virtual AccessRules RulesFor(const api::UserInfo& user, const std::string& ns) const = 0;
};

// Authenticated users may do anything; anonymous ones may read the version, the health and the
// discovery documents.
std::shared_ptr<const Authorizer> MakeAllowAuthenticated();

}  // namespace swell::apiserver
