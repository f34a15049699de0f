// The roles and bindings that every cluster starts with, as kube-apiserver makes them.
// - Threads: pure functions.
#pragma once

#include <vector>

#include "json/value.h"

namespace swell::apiserver {

struct DefaultRbac {
  std::vector<json::Value> cluster_roles, cluster_role_bindings, roles, role_bindings;
};
DefaultRbac MakeDefaultRbac();

}  // namespace swell::apiserver
