// Who works in a project, by its spec.members: the API server looks at what their writer gives, and
// a controller gives it.
// - Threads: pure functions.
#pragma once

#include <string_view>

#include "kube/api/meta/meta.h"

namespace swell::api {

// Of its work.
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
