// Project: the facts of projects that several layers need, each read in one place.
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

// The project that this one is a part of; empty for a root.
inline std::string_view ParentOfProject(const json::Value& project) {
  return json::GetString(project, {"spec", "parent"});
}

// The ClusterRole that a member of the project (spec.members) has in its namespace. The API server
// checks that the writer may give this role; a controller creates the role binding.
inline std::string_view ClusterRoleOfMember(const json::Value& member) {
  const std::string_view role = json::GetString(member, {"role"}, "viewer");
  return role == "admin" ? "project-admin" : role;
}

}  // namespace swell::api
