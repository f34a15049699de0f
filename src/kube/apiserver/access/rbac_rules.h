// PolicyRule: one rule of a role, what it allows, and which rules cover which.
// - Threads: values and pure functions.
#pragma once

#include <string>
#include <vector>

#include "json/value.h"
#include "kube/apiserver/access/authorizer.h"

namespace swell::apiserver {

struct PolicyRule {
  std::vector<std::string> verbs, groups, resources, names, paths;
};
using PolicyRules = std::vector<PolicyRule>;

// What is not a list of strings reads as an empty list: the schema has refused it before.
PolicyRules ReadRules(const json::Value& role);
bool Allows(const PolicyRule& rule, const AccessAttributes& attributes);

// The part of `wanted` that `held` does not grant: one verb of one resource or path each.
PolicyRules Uncovered(const PolicyRules& held, const PolicyRules& wanted);
// `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`, sorted lines, one per resource.
std::string Describe(const PolicyRules& uncovered);

}  // namespace swell::apiserver
