#include "cli/access/users.h"

#include <algorithm>

#include "base/nearest_word.h"
#include "base/strings.h"
#include "cli/cluster.h"
#include "cli/flags.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/project.h"
#include "kube/client/kubeconfig.h"

namespace swell::cli {
namespace {

constexpr Duration kNamespaceLimit = std::chrono::seconds(30);
constexpr Duration kNamespacePause = std::chrono::milliseconds(50);
const Resource kRoleBindings{"rbac.authorization.k8s.io", "v1", "rolebindings", true};
const Resource kClusterRoleBindings{"rbac.authorization.k8s.io", "v1", "clusterrolebindings",
                                    false};

Status NoSuchProject(const std::string& name, const std::vector<json::SharedValue>& projects) {
  std::vector<std::string> names;
  names.reserve(projects.size());
  for (const json::SharedValue& project : projects) names.emplace_back(api::Name(*project));
  const std::string message =
      StrCat(Quote(name), ": this project does not exist; ",
             names.empty() ? StrCat("create it with: swell project create ", name)
                           : StrCat("there are: ", Join(names, ", ")));
  return Status(Code::kNotFound, StrCat("project ", message),
                {.causes = {{"FieldValueNotFound", "projects", message}}});
}

// Waits for a namespace that is still being created.
Status AwaitNamespace(Api& api, const std::string& ns) {
  for (Duration waited{};; waited += kNamespacePause) {
    const auto there = api.Get(client::resources::kNamespaces, "", ns);
    if (there.ok()) return Status::Ok();
    if (there.status().code() != Code::kNotFound) return there.status();
    if (waited >= kNamespaceLimit || !api.Pause(kNamespacePause)) break;
  }
  return Status(Code::kTimeout,
                StrCat("namespace ", Quote(ns), " of the project does not exist yet; try again"));
}

// The namespaces of the projects and of the projects below them.
Result<std::vector<std::string>> NamespacesOf(Api& api, std::vector<std::string> wanted) {
  if (wanted.empty()) return std::vector<std::string>();
  SWELL_ASSIGN_OR_RETURN(const auto projects, api.List(client::resources::kProjects, ""));
  std::vector<std::string> namespaces;
  for (size_t i = 0; i < wanted.size(); ++i) {  // grows by the projects below
    const std::string name = wanted[i];
    const json::Value* found = nullptr;
    bool leaf = true;
    for (const json::SharedValue& project : projects) {
      if (api::Name(*project) == name) found = project.get();
      if (api::ParentOfProject(*project) != name) continue;
      leaf = false;
      if (std::find(wanted.begin(), wanted.end(), api::Name(*project)) == wanted.end()) {
        wanted.emplace_back(api::Name(*project));
      }
    }
    if (found == nullptr) return NoSuchProject(name, projects);
    if (leaf) namespaces.emplace_back(api::NamespaceOfProject(*found));
  }
  for (const std::string& ns : namespaces) SWELL_RETURN_IF_ERROR(AwaitNamespace(api, ns));
  return namespaces;
}

// Users are Secrets: a refusal of the server names those, and not users.
Status UsersStatus(const Status& status) {
  return status.code() == Code::kForbidden
             ? status.WithContext("users are for administrators to see and to change")
             : status;
}

Status BindRole(Api& api,
                const api::RegisteredUser& user,
                const std::vector<std::string>& namespaces) {
  const bool admin = user.role == "admin";
  const json::Value binding = json::Object{
      {"apiVersion", "rbac.authorization.k8s.io/v1"},
      {"kind", admin ? "ClusterRoleBinding" : "RoleBinding"},
      {"metadata", json::Object{{"name", user.secret},
                                {"labels", json::Object{{api::kUserLabel, user.secret}}}}},
      {"roleRef", json::Object{{"apiGroup", "rbac.authorization.k8s.io"},
                               {"kind", "ClusterRole"},
                               {"name", admin ? "cluster-admin" : user.role}}},
      {"subjects",
       json::Array{json::Object{
           {"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "User"}, {"name", user.name}}}}};
  if (admin) return api.Create(kClusterRoleBindings, "", binding).status();
  for (const std::string& ns : namespaces) {
    const auto made = api.Create(kRoleBindings, ns, binding);
    if (!made.ok()) return made.status().WithContext(StrCat("role in namespace ", Quote(ns)));
  }
  return Status::Ok();
}

Status Remove(Api& api, const Resource& resource, std::string_view ns, std::string_view name) {
  const auto gone = api.Delete(resource, ns, name);
  return gone.ok() || gone.status().code() == Code::kNotFound ? Status::Ok() : gone.status();
}

Status RemoveUser(Api& api, const std::string& secret) {
  // The Secret first: from then on the credentials are invalid.
  SWELL_RETURN_IF_ERROR(Remove(api, client::resources::kSecrets, api::kUserNamespace, secret));
  for (const Resource* resource : {&kRoleBindings, &kClusterRoleBindings}) {
    SWELL_ASSIGN_OR_RETURN(
        const auto bindings,
        api.List(*resource, "", {.label_selector = StrCat(api::kUserLabel, "=", secret)}));
    for (const json::SharedValue& binding : bindings) {
      SWELL_RETURN_IF_ERROR(Remove(api, *resource, api::Namespace(*binding), api::Name(*binding)));
    }
  }
  return Status::Ok();
}

}  // namespace

Status CheckOwnUsers(Api& api) {
  SWELL_ASSIGN_OR_RETURN(const auto version, api.CallObject({.method = "GET", .path = "/version"}));
  const std::string_view text = json::GetString(*version, {"gitVersion"});
  if (IsEmbedded(text)) return Status::Ok();
  return Status(
      Code::kNotAcceptable,
      StrCat("the cluster at ", api.connection().url, " is Kubernetes ", text,
             ", whose users are managed elsewhere; bind them to the ClusterRole edit or view in "
             "the project's namespace"));
}

Result<std::vector<api::RegisteredUser>> ListUsers(Api& api) {
  const auto secrets = api.List(client::resources::kSecrets, api::kUserNamespace,
                                {.label_selector = std::string(api::kUserLabel)});
  if (!secrets.ok()) return UsersStatus(secrets.status());
  std::vector<api::RegisteredUser> users;
  for (const json::SharedValue& secret : *secrets) {
    if (api::IsUserSecret(*secret)) users.emplace_back(*secret);
  }
  std::sort(users.begin(), users.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return users;
}

Result<api::RegisteredUser> FindUser(Api& api, const std::string& name) {
  SWELL_ASSIGN_OR_RETURN(std::vector<api::RegisteredUser> users, ListUsers(api));
  std::vector<std::string> names;
  for (api::RegisteredUser& user : users) {
    if (user.name == name) {
      api::RegisteredUser found = std::move(user);
      return found;
    }
    names.push_back(user.name);
  }
  const std::string near = NearestWord(name, names);
  return Status(Code::kNotFound, StrCat("user ", Quote(name), " not found",
                                        near.empty() ? "" : StrCat("; is it ", Quote(near), "?")));
}

Result<api::RegisteredUser> CreateUser(Api& api, const api::RegisteredUser& user) {
  SWELL_RETURN_IF_ERROR(api::CheckNewUser(user));
  const auto there = FindUser(api, user.name);
  if (there.status().code() == Code::kForbidden) return there.status();
  if (there.ok()) {
    const std::string message = StrCat(Quote(user.name), " already exists");
    return Status(Code::kAlreadyExists, StrCat("user ", message),
                  {.causes = {{"FieldValueDuplicate", "name", message}}});
  }
  SWELL_ASSIGN_OR_RETURN(const auto namespaces, NamespacesOf(api, user.projects));
  SWELL_ASSIGN_OR_RETURN(
      const json::SharedValue secret,
      api.Create(client::resources::kSecrets, api::kUserNamespace, user.ToSecret()));
  api::RegisteredUser made(*secret);
  if (const Status bound = BindRole(api, made, namespaces); !bound.ok()) {
    (void)RemoveUser(api, made.secret);  // `swell user list` shows what is left
    return bound;
  }
  return made;
}

Status DeleteUser(Api& api, const std::string& name) {
  SWELL_ASSIGN_OR_RETURN(const api::RegisteredUser user, FindUser(api, name));
  return RemoveUser(api, user.secret);
}

Result<std::string> MakeUserKubeconfig(Api& api,
                                       const ClusterAddress& address,
                                       const api::RegisteredUser& user,
                                       const CredentialsRequest& request) {
  client::ClusterAccess access;
  access.server = address.server;
  access.ca_pem = address.ca_pem;
  access.user = user.name;
  if (!user.projects.empty()) {
    SWELL_ASSIGN_OR_RETURN(const auto namespaces, NamespacesOf(api, {user.projects.front()}));
    if (!namespaces.empty()) access.ns = namespaces.front();
  }
  const json::Value wanted =
      json::Object{{"uid", user.uid},
                   {"certificate", request.certificate},
                   {"expirationSeconds",
                    std::chrono::duration_cast<std::chrono::seconds>(request.valid).count()}};
  SWELL_ASSIGN_OR_RETURN(
      const json::SharedValue made,
      api.CallObject({.method = "POST",
                      .path = StrCat("/swell/v1/users/", user.secret, "/credentials"),
                      .body = json::Print(wanted)}));
  access.token = json::GetString(*made, {"token"});
  access.client_cert_pem = json::GetString(*made, {"certificate"});
  access.client_key_pem = json::GetString(*made, {"key"});
  return client::MakeKubeconfig("swell", access);
}

}  // namespace swell::cli
