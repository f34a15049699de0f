// swell user create, list, delete, kubeconfig.
#include <algorithm>

#include "base/file.h"
#include "base/strings.h"
#include "cli/access/users.h"
#include "cli/cluster.h"
#include "cli/print/output.h"
#include "cli/print/text_table.h"
#include "cli/session.h"
#include "ops/commands.h"
#include "ops/data_dir.h"
#include "ops/flags.h"

namespace swell::ops {
namespace {

// The fields of a user as the flags call them.
std::string FlagOf(std::string_view field) {
  if (field == "name") return "user";
  if (field == "projects") return "--project";
  if (field == "groups") return "--group";
  if (field == "runAs") return "--run-as";
  return StrCat("--", field);
}

// An error about a field names the flag.
Status InWordsOfFlags(const Status& status) {
  const auto& causes = status.details().causes;
  if (causes.empty()) return status;
  const auto& [reason, field, cause] = causes.front();
  const std::string message = StrCat(FlagOf(field), cause.starts_with('"') ? " " : ": ", cause);
  if (status.code() == Code::kInvalid) return cli::Misuse(message);
  return Status(status.code(), message);
}

class UserAction : public cli::Action {
 public:
  void Declare(cli::Flags& flags) override { AddDataDir(flags, data_dir_); }

 protected:
  // Connects, and refuses a cluster whose users are not Swell's.
  Result<cli::Api*> Connect(cli::Session& session) {
    if (!data_dir_.empty()) {
      if (!session.global().cluster.kubeconfig.empty()) {
        return cli::Misuse("--data-dir and --kubeconfig exclude each other");
      }
      const DataDir dir = ChooseDataDir(data_dir_);
      if (!FindRunning(dir)) {
        return Status(Code::kUnavailable, StrCat("no cluster runs in ", dir.path,
                                                 "; start it with: swell up --detach"));
      }
      session.UseKubeconfig(dir.Kubeconfig());
    }
    SWELL_ASSIGN_OR_RETURN(cli::Api * api, session.Server());
    SWELL_RETURN_IF_ERROR(cli::CheckOwnUsers(*api));
    return api;
  }

 private:
  std::string data_dir_;
};

// Commands that give credentials to a user.
class CredentialsAction : public UserAction {
 protected:
  void DeclareCredentials(cli::Flags& flags) {
    flags.Group("Credentials");
    flags.Switch("--certificate", &certificate_, "a client certificate instead of a token");
    flags.Text("--duration", &duration_, "DURATION",
               "how long the credentials are valid (default 365d)");
    flags.Text("-o,--output", &file_, "FILE",
               "where to write the kubeconfig (default NAME.kubeconfig; -: standard output)");
  }
  Status CheckCredentials() const { return cli::ParseDuration(duration_, "--duration").status(); }
  // What was done; standard output may be the kubeconfig's.
  void Note(cli::Session& session, std::string_view line) const {
    file_ == "-" ? session.ErrLine(line) : static_cast<void>(session.OutLine(line));
  }
  Status WriteKubeconfig(cli::Session& session, cli::Api& api, const api::RegisteredUser& user) {
    std::string from;
    SWELL_ASSIGN_OR_RETURN(const client::ClusterAccess access,
                           cli::FindCluster(session.global().cluster, session.env().getenv, from));
    SWELL_ASSIGN_OR_RETURN(const Duration valid, cli::ParseDuration(duration_, "--duration"));
    SWELL_ASSIGN_OR_RETURN(
        const std::string text,
        cli::MakeUserKubeconfig(api, {access.server, access.ca_pem}, user, {certificate_, valid}));
    if (file_ == "-") {
      session.Out(text);
      return Status::Ok();
    }
    std::string file = file_;
    if (file.empty()) {
      file = user.name;
      std::replace(file.begin(), file.end(), '/', '_');
      file += ".kubeconfig";
    }
    SWELL_RETURN_IF_ERROR(WriteFileAtomically(file, text, 0600));
    Note(session,
         StrCat("kubeconfig written to ", file, " (", certificate_ ? "client certificate" : "token",
                ", valid for ", duration_, ")"));
    return Status::Ok();
  }

 private:
  std::string duration_{cli::kUserDuration};
  std::string file_;
  bool certificate_ = false;
};

class CreateAction final : public CredentialsAction {
 public:
  void Declare(cli::Flags& flags) override {
    UserAction::Declare(flags);
    flags.Group("User");
    flags.Text("--role", &user_.role, "ROLE", "admin, project-admin, researcher or viewer");
    flags.List("--project", &user_.projects, "NAME", "project of the role, repeatable");
    flags.List("--group", &user_.groups, "NAME", "group for your own role bindings, repeatable");
    flags.Text("--run-as", &user_.run_as, "UID[:GID,...]",
               "user and groups of the node that the pods run as");
    DeclareCredentials(flags);
  }
  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    if (words.size() != 1) return cli::Misuse("expected one NAME");
    user_.name = words[0];
    SWELL_RETURN_IF_ERROR(InWordsOfFlags(api::CheckNewUser(user_)));
    SWELL_RETURN_IF_ERROR(CheckCredentials());
    SWELL_ASSIGN_OR_RETURN(cli::Api * api, Connect(session));
    const auto made = cli::CreateUser(*api, user_);
    if (!made.ok()) return Explain(made.status());
    if (const Status written = WriteKubeconfig(session, *api, *made); !written.ok()) {
      (void)cli::DeleteUser(*api, user_.name);  // all or nothing; user list shows what is left
      return written;
    }
    Note(session, StrCat("user ", Quote(made->name), " created: ", made->role,
                         made->projects.empty() ? "" : " in ", Join(made->projects, ",")));
    return 0;
  }

 private:
  Status Explain(const Status& status) const {
    if (status.code() != Code::kAlreadyExists) return InWordsOfFlags(status);
    return Status(
        status.code(),
        StrCat(status.message(), "; for another kubeconfig: swell user kubeconfig ", user_.name));
  }

  api::RegisteredUser user_;
};

class ListAction final : public UserAction {
 public:
  void Declare(cli::Flags& flags) override {
    UserAction::Declare(flags);
    flags.Choice("-o,--output", &output_, "FORMAT", {"json"}, "output format: json");
  }
  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(CheckWords(words));
    SWELL_ASSIGN_OR_RETURN(cli::Api * api, Connect(session));
    SWELL_ASSIGN_OR_RETURN(const auto all, cli::ListUsers(*api));
    if (output_ == "json") {
      PrintJson(session, all);
    } else if (all.empty()) {
      session.ErrLine(
          "No users. The kubeconfig of swell up belongs to the admin; swell user create adds "
          "users.");
    } else {
      PrintTable(session, all);
    }
    return 0;
  }

 private:
  static void PrintJson(cli::Session& session, const std::vector<api::RegisteredUser>& users) {
    json::Array list;
    for (const api::RegisteredUser& user : users) {
      list.push_back(json::Object{{"name", user.name},
                                  {"role", user.role},
                                  {"projects", Join(user.projects, ",")},
                                  {"groups", Join(user.groups, ",")},
                                  {"runAs", user.run_as},
                                  {"created", user.created}});
    }
    session.OutLine(json::PrintPretty(json::Value(std::move(list))));
  }
  static void PrintTable(cli::Session& session, const std::vector<api::RegisteredUser>& users) {
    cli::TextTable table({"NAME", "ROLE", "PROJECTS", "GROUPS", "RUN-AS", "AGE"});
    for (const api::RegisteredUser& user : users) {
      table.Add({user.name, user.role, cli::OrDash(Join(user.projects, ",")),
                 cli::OrDash(Join(user.groups, ",")), cli::OrDash(user.run_as),
                 cli::AgeOf(user.created, session.Now())});
    }
    session.Out(table.ToString());
  }

  std::string output_;
};

class DeleteAction final : public UserAction {
 public:
  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    if (words.empty()) return cli::Misuse("expected NAME...");
    SWELL_ASSIGN_OR_RETURN(cli::Api * api, Connect(session));
    for (const std::string& name : words) {
      SWELL_RETURN_IF_ERROR(cli::DeleteUser(*api, name));
      session.OutLine(StrCat("user ", Quote(name), " deleted"));
    }
    return 0;
  }
};

class KubeconfigAction final : public CredentialsAction {
 public:
  void Declare(cli::Flags& flags) override {
    UserAction::Declare(flags);
    DeclareCredentials(flags);
  }
  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    if (words.size() != 1) return cli::Misuse("expected one NAME");
    SWELL_RETURN_IF_ERROR(CheckCredentials());
    SWELL_ASSIGN_OR_RETURN(cli::Api * api, Connect(session));
    SWELL_ASSIGN_OR_RETURN(const api::RegisteredUser user, cli::FindUser(*api, words[0]));
    SWELL_RETURN_IF_ERROR(WriteKubeconfig(session, *api, user));
    return 0;
  }
};

}  // namespace

cli::Command UserCommand() {
  cli::Command user{
      .name = "user", .group = "Cluster", .summary = "Manage users of the embedded cluster."};
  user.notes = "The cluster is the one of the kubeconfig, or the one in --data-dir.";
  cli::Command create{
      .name = "create",
      .summary = "Create a user and write a kubeconfig for them.",
      .usage = "NAME",
      .examples =
          {{"A researcher in a project",
            "swell user create alice --role researcher --project vision"},
           {"An administrator of two projects, with a client certificate",
            "swell user create bob --role project-admin --project vision --project nlp "
            "--certificate -o bob.kubeconfig"},
           {"A user whose pods run as user 1500 with groups 100 and 44 of the nodes",
            "swell user create eve --role researcher --project vision --run-as 1500:100,44"}},
      .notes =
          "Roles: admin (everything); project-admin (everything in the project's namespace, roles "
          "included); researcher (jobs, pods, volumes and Secrets of the namespace); viewer "
          "(reads all but Secrets). For a department, the role covers its current projects "
          "only.",
      .make = cli::Makes<CreateAction>()};
  cli::Command list{.name = "list",
                    .aliases = {"ls"},
                    .summary = "List the users.",
                    .examples = {{"As a table", "swell user list"}},
                    .make = cli::Makes<ListAction>()};
  cli::Command del{.name = "delete",
                   .summary = "Delete users. Their credentials become invalid at once.",
                   .usage = "NAME...",
                   .examples = {{"One user", "swell user delete alice"}},
                   .make = cli::Makes<DeleteAction>()};
  cli::Command kubeconfig{
      .name = "kubeconfig",
      .summary = "Write another kubeconfig for a user.",
      .usage = "NAME",
      .examples = {{"Valid for a month", "swell user kubeconfig alice --duration 30d -o a.yaml"}},
      .make = cli::Makes<KubeconfigAction>()};
  user.children = {std::move(create), std::move(list), std::move(del), std::move(kubeconfig)};
  return user;
}

}  // namespace swell::ops
