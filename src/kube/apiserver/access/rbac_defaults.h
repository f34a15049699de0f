// The roles and bindings that every cluster starts with, as kube-apiserver makes them.
// - Threads: pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "json/value.h"

namespace swell::apiserver {

struct DefaultRbac {
  std::vector<json::Value> cluster_roles, cluster_role_bindings, roles, role_bindings;
};
DefaultRbac MakeDefaultRbac();

// Whether earlier versions made this rule of a default role, and it allows too much: writing all
// of the job kinds, their status included.
bool IsRetiredRule(std::string_view role, const json::Value& rule);

}  // namespace swell::apiserver
