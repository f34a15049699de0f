// The members of a project (spec.members) as role bindings. The API server checks that the writer
// may give these roles; a controller creates the bindings.
// - Threads: pure functions.
#pragma once

#include <string_view>

#include "kube/api/meta/meta.h"

namespace swell::api {

// The namespace of the project's workloads.
inline std::string_view NamespaceOfProject(const json::Value& project) {
  const std::string_view ns = json::GetString(project, {"spec", "namespace"});
  return ns.empty() ? Name(project) : ns;
}

// The ClusterRole that a member has there.
inline std::string_view ClusterRoleOfMember(const json::Value& member) {
  const std::string_view role = json::GetString(member, {"role"}, "viewer");
  return role == "admin" ? "project-admin" : role;
}

}  // namespace swell::api
