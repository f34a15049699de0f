// swell user create, list, delete, kubeconfig.
#include "base/strings.h"
#include "cli/print/output.h"
#include "cli/print/text_table.h"
#include "cli/session.h"
#include "ops/commands.h"
#include "ops/users.h"

namespace swell {
namespace {

class UserAction : public cli::Action {
 public:
  void Declare(cli::Flags& flags) override {
    AddRemoteFlags(flags, flags_.remote);
    AddDataDir(flags, flags_.data_dir);
  }

 protected:
  void DeclareCredentials(cli::Flags& flags) {
    flags.Group("Credentials");
    flags.Switch("--certificate", &flags_.certificate, "a client certificate instead of a token");
    flags.Text("--duration", &flags_.duration, "DURATION",
               "how long the credentials are valid (default 365d)");
    flags.Text("-o,--output", &flags_.file, "FILE",
               "where to write the kubeconfig (default NAME.kubeconfig; -: standard output)");
  }
  Result<std::unique_ptr<Users>> Open(cli::Session& session) {
    SWELL_RETURN_IF_ERROR(cli::ParseDuration(flags_.duration, "--duration").status());
    const bool to_stdout = flags_.file == "-";
    return Users::Open(
        flags_, [&session](std::string_view text) { session.Out(text); },
        [&session, to_stdout](std::string_view line) {
          to_stdout ? session.ErrLine(line) : static_cast<void>(session.OutLine(line));
        });
  }

  UserFlags flags_;
};

class CreateAction final : public UserAction {
 public:
  void Declare(cli::Flags& flags) override {
    UserAction::Declare(flags);
    flags.Group("User");
    flags.Text("--role", &flags_.role, "ROLE", "admin, project-admin, researcher or viewer");
    flags.List("--project", &flags_.projects, "NAME", "project of the role, repeatable");
    flags.List("--group", &flags_.groups, "NAME", "group for your own role bindings, repeatable");
    flags.Text("--run-as", &flags_.run_as, "UID[:GID,...]",
               "user and groups of the node that the pods run as");
    DeclareCredentials(flags);
  }
  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    if (words.size() != 1) return cli::Misuse("one NAME expected");
    SWELL_RETURN_IF_ERROR(CheckUserName(words[0]));
    SWELL_RETURN_IF_ERROR(CheckCreate(flags_));
    SWELL_ASSIGN_OR_RETURN(auto users, Open(session));
    SWELL_RETURN_IF_ERROR(users->Create(flags_, words[0]));
    return 0;
  }
};

class ListAction final : public UserAction {
 public:
  void Declare(cli::Flags& flags) override {
    UserAction::Declare(flags);
    flags.Choice("-o,--output", &output_, "FORMAT", {"json"}, "output format: json");
  }
  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(CheckWords(words));
    SWELL_ASSIGN_OR_RETURN(auto users, Open(session));
    SWELL_ASSIGN_OR_RETURN(const std::vector<User> all, users->All());
    if (output_ == "json") {
      PrintJson(session, all);
    } else if (all.empty()) {
      session.ErrLine(
          "No users. The kubeconfig of swell up belongs to the admin; swell user create adds "
          "users.");
    } else {
      PrintTable(session, all, users->Now());
    }
    return 0;
  }

 private:
  static void PrintJson(cli::Session& session, const std::vector<User>& users) {
    json::Array list;
    for (const User& user : users) {
      list.push_back(json::Object{{"name", user.name},
                                  {"role", user.role},
                                  {"projects", user.projects},
                                  {"groups", user.groups},
                                  {"runAs", user.run_as},
                                  {"created", user.created}});
    }
    session.OutLine(json::PrintPretty(json::Value(std::move(list))));
  }
  static void PrintTable(cli::Session& session, const std::vector<User>& users, WallTime now) {
    cli::TextTable table({"NAME", "ROLE", "PROJECTS", "GROUPS", "RUN-AS", "AGE"});
    for (const User& user : users) {
      table.Add({user.name, user.role, cli::OrDash(user.projects), cli::OrDash(user.groups),
                 cli::OrDash(user.run_as), cli::AgeOf(user.created, now)});
    }
    session.Out(table.ToString());
  }

  std::string output_;
};

class DeleteAction final : public UserAction {
 public:
  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    if (words.empty()) return cli::Misuse("NAME... expected");
    SWELL_ASSIGN_OR_RETURN(auto users, Open(session));
    for (const std::string& name : words) {
      SWELL_RETURN_IF_ERROR(users->Delete(name));
      session.OutLine(StrCat("user ", Quote(name), " deleted"));
    }
    return 0;
  }
};

class KubeconfigAction final : public UserAction {
 public:
  void Declare(cli::Flags& flags) override {
    UserAction::Declare(flags);
    DeclareCredentials(flags);
  }
  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    if (words.size() != 1) return cli::Misuse("one NAME expected");
    SWELL_ASSIGN_OR_RETURN(auto users, Open(session));
    SWELL_ASSIGN_OR_RETURN(const User user, users->Find(words[0]));
    SWELL_RETURN_IF_ERROR(users->WriteKubeconfig(flags_, user));
    return 0;
  }
};

}  // namespace

cli::Command UserCommand() {
  cli::Command user{.name = "user",
                    .group = "Cluster",
                    .summary = "Manage users of the embedded cluster.",
                    .standalone = true};
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
      .standalone = true,
      .make = cli::Makes<CreateAction>()};
  cli::Command list{.name = "list",
                    .aliases = {"ls"},
                    .summary = "List the users.",
                    .examples = {{"As a table", "swell user list"}},
                    .standalone = true,
                    .make = cli::Makes<ListAction>()};
  cli::Command del{.name = "delete",
                   .summary = "Delete users. Their credentials become invalid at once.",
                   .usage = "NAME...",
                   .examples = {{"One user", "swell user delete alice"}},
                   .standalone = true,
                   .make = cli::Makes<DeleteAction>()};
  cli::Command kubeconfig{
      .name = "kubeconfig",
      .summary = "Write another kubeconfig for a user.",
      .usage = "NAME",
      .examples = {{"Valid for a month", "swell user kubeconfig alice --duration 30d -o a.yaml"}},
      .standalone = true,
      .make = cli::Makes<KubeconfigAction>()};
  user.children = {std::move(create), std::move(list), std::move(del), std::move(kubeconfig)};
  return user;
}

}  // namespace swell
