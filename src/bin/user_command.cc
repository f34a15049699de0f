// `swell user`: people of this machine's cluster: their names, roles and credentials.
//
// A user is a Secret (kube/apiserver/access/registered_users.h) and the bindings of their role. The
// cluster itself signs the credentials, so that its admins need no more than their kubeconfig.
#include <algorithm>
#include <cstdio>

#include "base/file.h"
#include "base/strings.h"
#include "bin/commands.h"
#include "bin/data_dir.h"
#include "bin/remote_process.h"
#include "cli/print/text_table.h"
#include "cli/session.h"
#include "kube/api/meta.h"
#include "kube/api/scheme.h"
#include "kube/apiserver/access/registered_users.h"
#include "kube/apiserver/access/submitter.h"
#include "kube/client/kubeconfig.h"

namespace swell {
namespace {

constexpr size_t kNameBytesMax = 253;
constexpr Duration kNamespaceLimit = std::chrono::seconds(30);
const client::Resource kSecrets{"", "v1", "secrets", true};
const client::Resource kRoleBindings{"rbac.authorization.k8s.io", "v1", "rolebindings", true};
const client::Resource kClusterRoleBindings{"rbac.authorization.k8s.io", "v1",
                                            "clusterrolebindings", false};
using apiserver::kUserLabel;

struct UserFlags {
  std::string data_dir;
  RemoteFlags remote;
  std::string role;
  std::vector<std::string> projects;
  std::vector<std::string> groups;
  std::string duration = "365d";
  std::string run_as;
  std::string file;
  bool certificate = false;
};

struct User {
  std::string secret, uid, name, role, projects, groups, run_as, created;
};

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
          std::string(json::GetString(secret, {"metadata", "creationTimestamp"}))};
}

class Users {
 public:
  static Result<std::unique_ptr<Users>> Open(const UserFlags& flags);

  Status Create(const UserFlags& flags, const std::string& name);
  Status Delete(const std::string& name);
  Status WriteKubeconfig(const UserFlags& flags, const User& user);
  Result<User> Find(const std::string& name);
  Result<std::vector<User>> All();
  WallTime Now() const { return process_->clock().Now(); }

 private:
  Result<std::vector<json::Value>> List(const client::Resource& resource,
                                        const std::string& ns,
                                        const std::string& selector);
  Result<json::SharedValue> Make(const client::Resource& resource,
                                 std::string_view ns,
                                 const json::Value& object);
  Status Remove(const client::Resource& resource, std::string_view ns, std::string_view name);
  Result<std::vector<std::string>> NamespacesOf(const std::vector<std::string>& projects);
  Status Bind(const User& user, const std::vector<std::string>& namespaces);
  Result<client::ClusterAccess> Credentials(const UserFlags& flags, const User& user);

  Result<json::SharedValue> AskCredentials(const User& user, bool certificate, Duration valid);

  std::unique_ptr<RemoteProcess> process_;
};

Result<std::unique_ptr<Users>> Users::Open(const UserFlags& flags) {
  auto users = std::make_unique<Users>();
  RemoteFlags remote = flags.remote;
  if (!flags.data_dir.empty()) {
    const DataDir dir = ChooseDataDir(flags.data_dir);
    if (!remote.kubeconfig.empty()) {
      return Status(Code::kInvalid, "--data-dir, --kubeconfig: one of them says which cluster");
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
        Code::kInvalid,
        StrCat("the cluster at ", users->process_->access().server, " is Kubernetes ", version,
               ", which knows its users by itself; bind them to the ClusterRole "
               "edit or view of a project's namespace"));
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

// Of the projects' own and of those below them; a project whose namespace is still being made is
// waited for.
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
      return Status(Code::kNotFound,
                    StrCat("--project ", Quote(wanted[i]), ": there is no such project",
                           names.empty() ? "; make it with: swell project create "
                                         : StrCat(" among ", Join(names, ", "), "; "),
                           names.empty() ? wanted[i] : "swell project list"));
    }
    bool leaf = true;
    for (const json::Value& project : all) {
      if (json::GetString(project, {"spec", "parent"}) != wanted[i]) continue;
      leaf = false;
      if (std::find(wanted.begin(), wanted.end(), api::Name(project)) == wanted.end()) {
        wanted.emplace_back(api::Name(project));
      }
    }
    std::string ns(json::GetString(*found, {"spec", "namespace"}, api::Name(*found)));
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
                                             " of the project is not made "
                                             "yet; try again"));
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
                                               " already exists; another kubeconfig for them: "
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
    (void)Delete(name);  // all or nothing; what stays is told by user list
    return done;
  }
  // Not into the kubeconfig.
  std::fprintf(flags.file == "-" ? stderr : stdout, "user %s created: %s%s%s\n",
               Quote(name).c_str(), user.role.c_str(), user.projects.empty() ? "" : " in ",
               user.projects.c_str());
  return Status::Ok();
}

Status Users::Delete(const std::string& name) {
  SWELL_ASSIGN_OR_RETURN(const User user, Find(name));
  // The secret first: from then on the credentials are nobody's.
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
    std::printf("%s", text.c_str());
    return Status::Ok();
  }
  std::string file = flags.file;
  if (file.empty()) {
    file = user.name;
    std::replace(file.begin(), file.end(), '/', '_');
    file += ".kubeconfig";
  }
  SWELL_RETURN_IF_ERROR(WriteFileAtomically(file, text, 0600));
  std::printf("kubeconfig written to %s (%s, good for %s)\n", file.c_str(),
              flags.certificate ? "client certificate" : "token", flags.duration.c_str());
  return Status::Ok();
}

Status CheckUserName(const std::string& name) {
  auto wrong = [&name](std::string_view why) {
    return Status(Code::kInvalid, StrCat("user ", Quote(name), ": ", why));
  };
  if (name.empty() || name.size() > kNameBytesMax) return wrong("1 to 253 characters expected");
  if (name.starts_with("system:")) return wrong("names with system: are the cluster's own");
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
    return Status(Code::kInvalid, StrCat("--role ", Quote(flags.role),
                                         ": admin, project-admin, researcher or viewer expected"));
  }
  if (flags.role == "admin" && !flags.projects.empty()) {
    return Status(Code::kInvalid, "--project: an admin is one everywhere");
  }
  if (flags.role != "admin" && flags.projects.empty()) {
    return Status(Code::kInvalid,
                  StrCat("--project: say where they are ", flags.role, "; swell project list"));
  }
  if (!flags.run_as.empty()) {
    auto run_as = apiserver::ParseRunAs(flags.run_as);
    if (!run_as.ok()) return run_as.status().WithContext("--run-as");
  }
  for (const std::string& group : flags.groups) {
    if (group.starts_with("system:") || group.starts_with("swell:") ||
        group.find(',') != std::string::npos || group.empty()) {
      return Status(Code::kInvalid, StrCat("--group ", Quote(group),
                                           ": a name without commas that does not begin with "
                                           "system: or swell: expected"));
    }
  }
  return Status::Ok();
}

int PrintUsers(const std::vector<User>& users, const std::string& output, WallTime now) {
  if (output == "json") {
    json::Array list;
    for (const User& user : users) {
      list.push_back(json::Object{{"name", user.name},
                                  {"role", user.role},
                                  {"projects", user.projects},
                                  {"groups", user.groups},
                                  {"runAs", user.run_as},
                                  {"created", user.created}});
    }
    std::printf("%s\n", json::PrintPretty(json::Value(std::move(list))).c_str());
    return 0;
  }
  if (users.empty()) {
    std::fprintf(stderr,
                 "No users: who holds the kubeconfig of swell up is admin. swell user create makes "
                 "others\n");
    return 0;
  }
  cli::TextTable table({"NAME", "ROLE", "PROJECTS", "GROUPS", "RUN-AS", "AGE"});
  for (const User& user : users) {
    auto or_dash = [](const std::string& text) { return text.empty() ? "-" : text; };
    table.Add({user.name, user.role, or_dash(user.projects), or_dash(user.groups),
               or_dash(user.run_as), cli::AgeOf(user.created, now)});
  }
  std::printf("%s", table.ToString().c_str());
  return 0;
}

const cli::Command kUser{
    .name = "user",
    .summary = "People of an embedded cluster: create, list, delete, kubeconfig.",
    .usage = "create NAME | list | delete NAME... | kubeconfig NAME",
    .examples = {{"A researcher in a project",
                  "swell user create alice --role researcher --project vision"},
                 {"Who administers two projects, with a client certificate",
                  "swell user create bob --role project-admin --project vision --project nlp "
                  "--certificate -o bob.kubeconfig"},
                 {"Whose pods run as user 1500 of the nodes, in groups 100 and 44",
                  "swell user create eve --role researcher --project vision --run-as 1500:100,44"},
                 {"Who there is", "swell user list"},
                 {"Another kubeconfig, for a month",
                  "swell user kubeconfig alice --duration 30d -o a.yaml"},
                 {"Nobody any more, at once, whatever they hold", "swell user delete alice"}},
    .notes =
        "Roles: admin (everything), project-admin (the project's namespace, its roles too), "
        "researcher (jobs, pods, volumes, secrets of the namespace), viewer (looks; no "
        "secrets). Of a project that has projects in it, those of now are meant. The cluster is "
        "the kubeconfig's, as for other commands, or that of --data-dir."};

void AddUserFlags(cli::Flags& flags, UserFlags& to) {
  AddRemoteFlags(flags, to.remote);
  AddDataDir(flags, to.data_dir);
  flags.Group("create");
  flags.Text("--role", &to.role, "ROLE", "admin, project-admin, researcher or viewer");
  flags.List("--project", &to.projects, "NAME", "where; repeatable");
  flags.List("--group", &to.groups, "NAME", "for role bindings of your own; repeatable");
  flags.Text("--run-as", &to.run_as, "UID[:GID,...]",
             "the user of the nodes that their pods run as, and its groups");
  flags.Group("create, kubeconfig");
  flags.Switch("--certificate", &to.certificate, "a client certificate instead of a token");
  flags.Text("--duration", &to.duration, "SPAN",
             "how long the credentials are good (default 365d)");
  flags.Text("-o,--output", &to.file, "FILE",
             "where the kubeconfig goes (default NAME.kubeconfig; -: standard output); of list: "
             "json");
  flags.Group("");
}

Result<int> RunUser(const UserFlags& flags, const std::vector<std::string>& words) {
  const std::string& verb = words[0];
  if (verb == "create") {
    SWELL_RETURN_IF_ERROR(CheckUserName(words[1]));
    SWELL_RETURN_IF_ERROR(CheckCreate(flags));
  }
  if (verb == "list" && !flags.file.empty() && flags.file != "json") {
    return Status(Code::kInvalid, StrCat("--output ", Quote(flags.file), ": json expected"));
  }
  SWELL_RETURN_IF_ERROR(cli::ParseDuration(flags.duration, "--duration").status());
  SWELL_ASSIGN_OR_RETURN(auto users, Users::Open(flags));
  if (verb == "list") {
    SWELL_ASSIGN_OR_RETURN(const std::vector<User> all, users->All());
    return PrintUsers(all, flags.file, users->Now());
  }
  if (verb == "create") {
    SWELL_RETURN_IF_ERROR(users->Create(flags, words[1]));
    return 0;
  }
  if (verb == "kubeconfig") {
    SWELL_ASSIGN_OR_RETURN(const User user, users->Find(words[1]));
    SWELL_RETURN_IF_ERROR(users->WriteKubeconfig(flags, user));
    return 0;
  }
  for (size_t i = 1; i < words.size(); ++i) {
    SWELL_RETURN_IF_ERROR(users->Delete(words[i]));
    std::printf("user %s deleted\n", Quote(words[i]).c_str());
  }
  return 0;
}

}  // namespace

int UserCommand(const std::vector<std::string>& arguments) {
  UserFlags flags;
  cli::Flags declared;
  AddUserFlags(declared, flags);
  std::vector<std::string> words;
  if (auto exit = ParseCommandLine(kUser, declared, arguments, &words)) return *exit;
  if (words.empty()) return Misused(kUser, "create, list, delete or kubeconfig expected");
  const bool list = words[0] == "list" || words[0] == "ls";
  if (list) words[0] = "list";
  if (!list && words[0] != "create" && words[0] != "delete" && words[0] != "kubeconfig") {
    return Misused(kUser, StrCat(Quote(words[0]), ": create, list, delete or kubeconfig expected"));
  }
  const size_t most = list ? 1 : words[0] == "delete" ? SIZE_MAX : 2;
  if (!list && words.size() < 2) return Misused(kUser, StrCat(words[0], " NAME expected"));
  if (words.size() > most) return Misused(kUser, StrCat("unexpected word ", Quote(words[most])));
  auto done = RunUser(flags, words);
  if (done.ok()) return *done;
  return done.status().code() == Code::kInvalid ? Misused(kUser, done.status().message())
                                                : FailCommand(done.status());
}

}  // namespace swell
