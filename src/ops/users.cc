#include "ops/users.h"

#include <algorithm>

#include "base/file.h"
#include "base/strings.h"
#include "cli/session.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/project.h"
#include "kube/api/schema/scheme.h"
#include "kube/apiserver/access/registered_users.h"
#include "kube/apiserver/access/submitter.h"
#include "kube/client/kubeconfig.h"
#include "ops/data_dir.h"

namespace swell {
namespace {

constexpr size_t kNameBytesMax = 253;
constexpr Duration kNamespaceLimit = std::chrono::seconds(30);
const client::Resource kSecrets{"", "v1", "secrets", true};
const client::Resource kRoleBindings{"rbac.authorization.k8s.io", "v1", "rolebindings", true};
const client::Resource kClusterRoleBindings{"rbac.authorization.k8s.io", "v1",
                                            "clusterrolebindings", false};
using apiserver::kUserLabel;

User ReadUser(const json::Value& secret) {
  auto data = [&secret](const char* field) {
    return Base64Decode(json::GetString(secret, {"data", field})).value_or("");
  };
  return {std::string(api::Name(secret)),
          std::string(api::Uid(secret)),
          data("username"),
          data("role"),
          data("projects"),
          data("groups"),
          data("runAs"),
          std::string(api::CreationTimestamp(secret))};
}

}  // namespace

Result<std::unique_ptr<Users>> Users::Open(const UserFlags& flags, Print print, Print note) {
  auto users = std::unique_ptr<Users>(new Users(std::move(print), std::move(note)));
  RemoteFlags remote = flags.remote;
  if (!flags.data_dir.empty()) {
    const DataDir dir = ChooseDataDir(flags.data_dir);
    if (!remote.kubeconfig.empty()) {
      return cli::Misuse("--data-dir and --kubeconfig exclude each other");
    }
    if (!FindRunning(dir)) {
      return Status(Code::kUnavailable,
                    StrCat("no cluster runs in ", dir.path, "; start it with: swell up --detach"));
    }
    remote.kubeconfig = dir.Kubeconfig();
  }
  SWELL_ASSIGN_OR_RETURN(users->process_, RemoteProcess::Connect(remote, {}));
  SWELL_ASSIGN_OR_RETURN(const std::string version, users->process_->ServerVersion());
  if (!IsSwellsOwn(version)) {
    return Status(
        Code::kNotAcceptable,
        StrCat("the cluster at ", users->process_->access().server, " is Kubernetes ", version,
               ", whose users are managed elsewhere; bind them to the ClusterRole edit or view in "
               "the project's namespace"));
  }
  return users;
}

Result<std::vector<json::Value>> Users::List(const client::Resource& resource,
                                             const std::string& ns,
                                             const std::string& selector) {
  auto answer = process_->Await([&](const client::ObjectCallback& done) {
    process_->client().List(resource, ns, {.label_selector = selector},
                            [done](Result<client::ObjectList> list) {
                              if (!list.ok()) return done(list.status());
                              json::Array items;
                              for (const auto& item : list->items) items.push_back(*item);
                              done(std::make_shared<const json::Value>(std::move(items)));
                            });
  });
  if (!answer.ok()) return answer.status();
  const json::Array& items = (*answer)->get_array();
  return std::vector<json::Value>(items.begin(), items.end());
}

Result<json::SharedValue> Users::Make(const client::Resource& resource,
                                      std::string_view ns,
                                      const json::Value& object) {
  return process_->Await([&](client::ObjectCallback done) {
    process_->client().Create(resource, ns, object, std::move(done));
  });
}

Status Users::Remove(const client::Resource& resource, std::string_view ns, std::string_view name) {
  auto gone = process_->Await([&](client::ObjectCallback done) {
    process_->client().Delete(resource, ns, name, {}, std::move(done));
  });
  return gone.ok() || gone.status().code() == Code::kNotFound ? Status::Ok() : gone.status();
}

Result<std::vector<User>> Users::All() {
  SWELL_ASSIGN_OR_RETURN(auto secrets, List(kSecrets, std::string(apiserver::kUserNamespace),
                                            std::string(kUserLabel)));
  std::vector<User> users;
  for (const json::Value& secret : secrets) {
    if (json::GetString(secret, {"type"}) == apiserver::kUserSecretType) {
      users.push_back(ReadUser(secret));
    }
  }
  std::sort(users.begin(), users.end(),
            [](const User& a, const User& b) { return a.name < b.name; });
  return users;
}

Result<User> Users::Find(const std::string& name) {
  SWELL_ASSIGN_OR_RETURN(std::vector<User> users, All());
  std::vector<std::string> names;
  for (User& user : users) {
    if (user.name == name) {
      User found = std::move(user);
      return found;
    }
    names.push_back(user.name);
  }
  const std::string near = cli::NearestWord(name, names);
  return Status(Code::kNotFound, StrCat("user ", Quote(name), " not found",
                                        near.empty() ? "" : StrCat("; is it ", Quote(near), "?")));
}

// The namespaces of the projects and of the projects below them. Waits for a namespace that is
// still being created.
Result<std::vector<std::string>> Users::NamespacesOf(const std::vector<std::string>& projects) {
  SWELL_ASSIGN_OR_RETURN(auto all, List(client::resources::kProjects, "", ""));
  std::vector<std::string> wanted = projects;
  std::vector<std::string> namespaces;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const json::Value& project) {
      return api::Name(project) == wanted[i];
    });
    if (found == all.end()) {
      std::vector<std::string> names;
      names.reserve(all.size());
      for (const json::Value& project : all) names.emplace_back(api::Name(project));
      return Status(
          Code::kNotFound,
          StrCat("--project ", Quote(wanted[i]), ": this project does not exist; ",
                 names.empty() ? StrCat("create it with: swell project create ", wanted[i])
                               : StrCat("there are: ", Join(names, ", "))));
    }
    bool leaf = true;
    for (const json::Value& project : all) {
      if (api::ParentOfProject(project) != wanted[i]) continue;
      leaf = false;
      if (std::find(wanted.begin(), wanted.end(), api::Name(project)) == wanted.end()) {
        wanted.emplace_back(api::Name(project));
      }
    }
    std::string ns(api::NamespaceOfProject(*found));
    if (leaf) namespaces.push_back(std::move(ns));
  }
  const SteadyTime start = process_->clock().Steady();
  for (const std::string& ns : namespaces) {
    for (;;) {
      auto there = process_->Await([&](client::ObjectCallback done) {
        process_->client().Get(client::resources::kNamespaces, "", ns, std::move(done));
      });
      if (there.ok()) break;
      if (there.status().code() != Code::kNotFound) return there.status();
      if (process_->clock().Steady() - start > kNamespaceLimit) {
        return Status(Code::kTimeout, StrCat("namespace ", Quote(ns),
                                             " of the project does not exist yet; try again"));
      }
      process_->Pause(std::chrono::milliseconds(50));
    }
  }
  return namespaces;
}

Status Users::Bind(const User& user, const std::vector<std::string>& namespaces) {
  const bool admin = user.role == "admin";
  json::Value binding = json::Object{
      {"apiVersion", "rbac.authorization.k8s.io/v1"},
      {"kind", admin ? "ClusterRoleBinding" : "RoleBinding"},
      {"metadata",
       json::Object{{"name", user.secret}, {"labels", json::Object{{kUserLabel, user.secret}}}}},
      {"roleRef", json::Object{{"apiGroup", "rbac.authorization.k8s.io"},
                               {"kind", "ClusterRole"},
                               {"name", admin ? "cluster-admin" : user.role}}},
      {"subjects",
       json::Array{json::Object{
           {"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "User"}, {"name", user.name}}}}};
  if (admin) return Make(kClusterRoleBindings, "", binding).status();
  for (const std::string& ns : namespaces) {
    auto made = Make(kRoleBindings, ns, binding);
    if (!made.ok()) return made.status().WithContext(StrCat("role in namespace ", Quote(ns)));
  }
  return Status::Ok();
}

Status Users::Create(const UserFlags& flags, const std::string& name) {
  if (auto known = Find(name); known.ok()) {
    return Status(Code::kAlreadyExists, StrCat("user ", Quote(name),
                                               " already exists; for another kubeconfig: "
                                               "swell user kubeconfig ",
                                               name));
  }
  SWELL_ASSIGN_OR_RETURN(auto namespaces, NamespacesOf(flags.projects));
  User user{.secret = StrCat("swell-user-", process_->random().NameSuffix(10)),
            .name = name,
            .role = flags.role};
  auto encoded = [](const std::string& text) { return json::Value(Base64Encode(text)); };
  const json::Value secret = json::Object{
      {"apiVersion", "v1"},
      {"kind", "Secret"},
      {"type", apiserver::kUserSecretType},
      {"metadata",
       json::Object{{"name", user.secret}, {"labels", json::Object{{kUserLabel, user.secret}}}}},
      {"data", json::Object{{"username", encoded(name)},
                            {"role", encoded(flags.role)},
                            {"projects", encoded(Join(flags.projects, ","))},
                            {"groups", encoded(Join(flags.groups, ","))},
                            {"runAs", encoded(flags.run_as)}}}};
  SWELL_ASSIGN_OR_RETURN(json::SharedValue made, Make(kSecrets, apiserver::kUserNamespace, secret));
  user = ReadUser(*made);
  Status done = Bind(user, namespaces);
  if (done.ok()) done = WriteKubeconfig(flags, user);
  if (!done.ok()) {
    (void)Delete(name);  // all or nothing; user list shows what is left
    return done;
  }
  note_(StrCat("user ", Quote(name), " created: ", user.role, user.projects.empty() ? "" : " in ",
               user.projects));
  return Status::Ok();
}

Status Users::Delete(const std::string& name) {
  SWELL_ASSIGN_OR_RETURN(const User user, Find(name));
  // The Secret first: from then on the credentials are invalid.
  SWELL_RETURN_IF_ERROR(Remove(kSecrets, apiserver::kUserNamespace, user.secret));
  const std::string selector = StrCat(kUserLabel, "=", user.secret);
  for (const client::Resource* resource : {&kRoleBindings, &kClusterRoleBindings}) {
    SWELL_ASSIGN_OR_RETURN(auto bindings, List(*resource, "", selector));
    for (const json::Value& binding : bindings) {
      SWELL_RETURN_IF_ERROR(Remove(*resource, api::Namespace(binding), api::Name(binding)));
    }
  }
  return Status::Ok();
}

Result<json::SharedValue> Users::AskCredentials(const User& user,
                                                bool certificate,
                                                Duration valid) {
  const json::Value wanted = json::Object{
      {"uid", user.uid},
      {"certificate", certificate},
      {"expirationSeconds", std::chrono::duration_cast<std::chrono::seconds>(valid).count()}};
  return process_->Ask({.method = "POST",
                        .path = StrCat("/swell/v1/users/", user.secret, "/credentials"),
                        .body = json::Print(wanted)});
}

Result<client::ClusterAccess> Users::Credentials(const UserFlags& flags, const User& user) {
  SWELL_ASSIGN_OR_RETURN(const Duration valid, cli::ParseDuration(flags.duration, "--duration"));
  client::ClusterAccess access;
  access.server = process_->access().server;
  access.ca_pem = process_->access().ca_pem;
  access.user = user.name;
  if (!user.projects.empty()) {
    SWELL_ASSIGN_OR_RETURN(auto namespaces,
                           NamespacesOf({user.projects.substr(0, user.projects.find(','))}));
    if (!namespaces.empty()) access.ns = namespaces.front();
  }
  SWELL_ASSIGN_OR_RETURN(json::SharedValue made, AskCredentials(user, flags.certificate, valid));
  access.token = json::GetString(*made, {"token"});
  access.client_cert_pem = json::GetString(*made, {"certificate"});
  access.client_key_pem = json::GetString(*made, {"key"});
  return access;
}

Status Users::WriteKubeconfig(const UserFlags& flags, const User& user) {
  SWELL_ASSIGN_OR_RETURN(const client::ClusterAccess access, Credentials(flags, user));
  const std::string text = client::MakeKubeconfig("swell", access);
  if (flags.file == "-") {
    print_(text);
    return Status::Ok();
  }
  std::string file = flags.file;
  if (file.empty()) {
    file = user.name;
    std::replace(file.begin(), file.end(), '/', '_');
    file += ".kubeconfig";
  }
  SWELL_RETURN_IF_ERROR(WriteFileAtomically(file, text, 0600));
  note_(StrCat("kubeconfig written to ", file, " (",
               flags.certificate ? "client certificate" : "token", ", valid for ", flags.duration,
               ")"));
  return Status::Ok();
}

Status CheckUserName(const std::string& name) {
  auto wrong = [&name](std::string_view why) {
    return cli::Misuse(StrCat("user ", Quote(name), ": ", why));
  };
  if (name.empty() || name.size() > kNameBytesMax) return wrong("1 to 253 characters expected");
  if (name.starts_with("system:")) return wrong("names that begin with system: are reserved");
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_@+";
  if (name.find_first_not_of(kAllowed) != std::string::npos || name.front() == '.' ||
      name.front() == '-') {
    return wrong("letters, digits and . - _ @ + expected, for example alice or alice@example.com");
  }
  return Status::Ok();
}

Status CheckCreate(const UserFlags& flags) {
  constexpr std::string_view kRoles[] = {"admin", "project-admin", "researcher", "viewer"};
  if (std::find(std::begin(kRoles), std::end(kRoles), flags.role) == std::end(kRoles)) {
    return cli::Misuse(StrCat("--role ", Quote(flags.role),
                              ": admin, project-admin, researcher or viewer expected"));
  }
  if (flags.role == "admin" && !flags.projects.empty()) {
    return cli::Misuse("--project: the role admin is not limited to a project");
  }
  if (flags.role != "admin" && flags.projects.empty()) {
    return cli::Misuse(StrCat("--project is required for the role ", flags.role,
                              "; swell project list shows the projects"));
  }
  if (!flags.run_as.empty()) {
    auto run_as = apiserver::ParseRunAs(flags.run_as);
    if (!run_as.ok()) return cli::Misuse(StrCat("--run-as: ", run_as.status().message()));
  }
  for (const std::string& group : flags.groups) {
    if (group.starts_with("system:") || group.starts_with("swell:") ||
        group.find(',') != std::string::npos || group.empty()) {
      return cli::Misuse(StrCat("--group ", Quote(group),
                                ": a name without commas that does not begin with system: or "
                                "swell: expected"));
    }
  }
  return Status::Ok();
}

}  // namespace swell
