// runai config, whoami, version.
#include "base/file.h"
#include "base/strings.h"
#include "cli/no_role.h"
#include "cli/print/output.h"
#include "cli/runai/runai.h"
#include "cli/setup/front_end_version.h"
#include "json/yaml.h"

namespace swell::cli::runai {
namespace {

// The default project is the namespace of the kubeconfig's context, as kubectl has it too.
class ConfigProjectAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Text("--name", &name_, "NAME", "the project (or the first argument)").hidden = true;
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(ProjectTree tree, ReadProjects(*api));
    // As with other commands, -p names the project.
    const std::string& flag = name_.empty() ? session.global().project : name_;
    if (words.empty() && !flag.empty()) words.push_back(flag);
    if (words.empty()) {
      const ProjectView* now = tree.OfNamespace(session.Namespace());
      if (now == nullptr) return Misuse("expected one name: runai config project NAME");
      session.OutLine(now->name);
      return 0;
    }
    if (words.size() != 1) return Misuse("expected one name: runai config project NAME");
    SWELL_ASSIGN_OR_RETURN(ProjectView project, FindProject(tree, words[0], "runai"));
    if (project.department) {
      return Misuse(StrCat(Quote(project.name), " is a department; work belongs to its projects"));
    }
    // Every command that follows would be refused.
    if (!HasRole(*api, project.ns).value_or(true)) {
      return Status(Code::kForbidden,
                    StrCat("you have no role in project ", project.name, " (namespace ", project.ns,
                           "), so it cannot be your default project; an administrator can make "
                           "you a member"));
    }
    const std::string& path = api->connection().kubeconfig;
    if (path.empty()) {
      return Status(Code::kNotAcceptable,
                    "there is no kubeconfig to store it in; use -p PROJECT instead");
    }
    SWELL_ASSIGN_OR_RETURN(const std::string context,
                           SetNamespace(path, api->connection().context, project.ns));
    session.OutLine(StrCat("Project ", project.name, " has been set as default project"));
    session.OutLine(StrCat("kubectl, swell and arena now use namespace ", project.ns, ", too (",
                           path, "). To unset it: kubectl config unset contexts.", context,
                           ".namespace"));
    return 0;
  }

 private:
  // The context that was changed.
  static Result<std::string> SetNamespace(const std::string& path,
                                          std::string context,
                                          const std::string& ns) {
    SWELL_ASSIGN_OR_RETURN(std::string text, ReadFile(path, 4 << 20));
    auto documents = json::ParseYaml(text);
    if (!documents.ok()) return documents.status().WithContext(path);
    if (documents->size() != 1) return Status(Code::kInvalid, path + ": expected one document");
    json::Value config = std::move((*documents)[0]);
    if (context.empty()) context = json::GetString(config, {"current-context"});
    json::Value* contexts = json::FindMutable(config, {"contexts"});
    if (contexts != nullptr && contexts->is_array()) {
      for (json::Value& entry : contexts->get_array()) {
        if (json::GetString(entry, {"name"}) != context) continue;
        json::Set(entry, {"context", "namespace"}, ns);
        SWELL_RETURN_IF_ERROR(WriteFileAtomically(path, json::PrintYaml(config), 0600));
        return context;
      }
    }
    return Status(Code::kNotFound, StrCat(path, ": no context named ", Quote(context)));
  }

  std::string name_;
};

class ConfigViewAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Switch("--json", &json_, "print JSON");
    flags.Switch("--yaml", &yaml_, "print YAML");
  }
  Result<int> Run(Session& session, std::vector<std::string>) override {
    if (json_ && yaml_) return Misuse("--json and --yaml exclude each other");
    SWELL_ASSIGN_OR_RETURN(const OutputForm form, ParseOutputForm(json_   ? "json"
                                                                  : yaml_ ? "yaml"
                                                                          : ""));
    SWELL_ASSIGN_OR_RETURN(Scope scope, FindScope(session, NoProject::kMeansAll));
    const std::pair<std::string_view, std::string> facts[] = {
        {"Project", scope.all ? "none" : scope.project.name},
        {"Namespace", scope.all ? session.Namespace() : scope.project.ns},
        {"Cluster", scope.api->connection().url},
        {"Kubeconfig", scope.api->connection().kubeconfig}};
    json::Object object;
    for (const auto& [name, value] : facts) {
      if (form.table()) session.OutLine(StrCat(name, ": ", value));
      object[ToLower(name)] = value;
    }
    if (!form.table()) session.Out(FormatObject(form, object, ""));
    return 0;
  }

 private:
  bool json_ = false, yaml_ = false;
};

class WhoamiAction final : public Action {
 public:
  void Declare(Flags&) override {}
  Result<int> Run(Session& session, std::vector<std::string>) override {
    SWELL_ASSIGN_OR_RETURN(Scope scope, FindScope(session, NoProject::kMeansAll));
    SWELL_ASSIGN_OR_RETURN(std::string user, UserName(session, *scope.api));
    session.OutLine(StrCat("User: ", user));
    session.OutLine(StrCat("Project: ", scope.all ? "none" : scope.project.name));
    session.OutLine(StrCat("Cluster: ", scope.api->connection().url));
    return 0;
  }
};

}  // namespace

Command ConfigSpec() {
  Command config{
      .name = "config",
      .summary = "Set the default project.",
  };
  Command project{
      .name = "project",
      .summary = "Set the default project, also for kubectl, swell and arena.",
      .usage = "NAME",
      .examples = {{"Set it for the following commands", "runai config project team-a"}},
      .make = Makes<ConfigProjectAction>(),
  };
  Command view{
      .name = "view",
      .aliases = {"describe", "generate"},
      .summary = "Print the project, cluster and kubeconfig in use.",
      .make = Makes<ConfigViewAction>(),
  };
  config.children = {std::move(project), std::move(view)};
  return config;
}

Command SetProjectSpec() {
  return {
      .name = "set",
      .summary = "Set the default project, also for kubectl, swell and arena.",
      .usage = "NAME",
      .examples = {{"Set it for the following commands", "runai project set team-a"}},
      .make = Makes<ConfigProjectAction>(),
  };
}

Command WhoamiSpec() {
  return {
      .name = "whoami",
      .summary = "Show the current user.",
      .make = Makes<WhoamiAction>(),
  };
}

Command VersionSpec() {
  return FrontEndVersionSpec(StrCat("Version: ", Version()),
                             "  Commands of Run:ai, provided by Swell");
}

}  // namespace swell::cli::runai
