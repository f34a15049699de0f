// runai delete, suspend, resume, logs, config, whoami, version.
#include <algorithm>

#include "base/file.h"
#include "base/strings.h"
#include "cli/pods/pod_logs.h"
#include "cli/print/output.h"
#include "cli/runai/runai.h"
#include "json/yaml.h"
#include "kube/api/meta.h"

namespace swell::cli::runai {
namespace {

class DeleteAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Switch("-A,--all", &all_, "every workload of the project");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (words.empty() != all_) return Misuse("names expected: runai delete JOB..., or --all");
    SWELL_ASSIGN_OR_RETURN(Scope scope, FindScope(session, !all_));
    std::vector<JobView> jobs;
    int failed = 0;
    if (all_) {
      SWELL_ASSIGN_OR_RETURN(jobs, ListJobs(*scope.api, scope.ns()));
    }
    for (const std::string& word : words) {
      auto job = FindWorkload(session, scope, word);
      if (!job.ok() && words.size() == 1) return job.status();
      if (job.ok()) {
        jobs.push_back(std::move(*job));
      } else {
        session.ErrLine(StrCat("runai: ", ErrorText(job.status())));
        ++failed;
      }
    }
    for (const JobView& job : jobs) {
      auto gone = scope.api->Delete(job.kind->resource, job.ns, job.name);
      if (!gone.ok() && gone.status().code() != Code::kNotFound) return gone.status();
      session.OutLine(StrCat("The job '", job.name, "' has been deleted successfully"));
    }
    return failed > 0 ? 1 : 0;
  }

 private:
  bool all_ = false;
};

class SuspendAction final : public Action {
 public:
  explicit SuspendAction(bool suspend) : suspend_(suspend) {}
  void Declare(Flags&) override {}
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    std::string_view verb = suspend_ ? "suspend" : "resume";
    if (words.empty()) return Misuse(StrCat("names expected: runai ", verb, " JOB..."));
    SWELL_ASSIGN_OR_RETURN(Scope scope, FindScope(session, true));
    for (const std::string& word : words) {
      SWELL_ASSIGN_OR_RETURN(JobView job, FindWorkload(session, scope, word));
      SWELL_RETURN_IF_ERROR(SetSuspended(*scope.api, job, suspend_));
      session.OutLine(StrCat("The job '", job.name, "' has been ",
                             suspend_ ? "suspended" : "resumed", " successfully"));
    }
    return 0;
  }

 private:
  bool suspend_;
};

class LogsAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    options_.Declare(flags);
    flags.Text("--pod", &pod_, "POD", "of this pod (default: the first)");
    flags.Switch("--all-pods", &all_, "of every pod, each line with its pod's name");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(options_.Check());
    if (words.size() != 1) return Misuse("one name expected: runai logs JOB");
    SWELL_ASSIGN_OR_RETURN(Scope scope, FindScope(session, true));
    SWELL_ASSIGN_OR_RETURN(JobView job, FindWorkload(session, scope, words[0]));
    if (!pod_.empty()) {
      std::erase_if(job.pods,
                    [&](const json::SharedValue& pod) { return api::Name(*pod) != pod_; });
    } else if (!all_ && job.pods.size() > 1) {
      job.pods.resize(1);
    }
    if (job.pods.empty()) {
      return Status(Code::kNotFound,
                    StrCat("the workload ", Quote(job.name), " has no pod",
                           pod_.empty() ? "" : " " + Quote(pod_), job.over() ? " any more" : " yet",
                           ": it is ", StatusWord(job), job.waits.empty() ? "" : "; ", job.waits));
    }
    SWELL_RETURN_IF_ERROR(PrintLogs(session, *scope.api, job.pods, options_));
    return 0;
  }

 private:
  LogOptions options_;
  std::string pod_;
  bool all_ = false;
};

// The default project is the namespace of the kubeconfig's context, as kubectl has it too.
class ConfigProjectAction final : public Action {
 public:
  void Declare(Flags&) override {}
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(ProjectTree tree, ReadProjects(*api));
    if (words.empty()) {
      const ProjectView* now = tree.OfNamespace(session.Namespace());
      if (now == nullptr) return Misuse("one name expected: runai config project NAME");
      session.OutLine(now->name);
      return 0;
    }
    if (words.size() != 1) return Misuse("one name expected: runai config project NAME");
    SWELL_ASSIGN_OR_RETURN(ProjectView project, FindProject(tree, words[0]));
    const std::string& path = api->connection().kubeconfig;
    if (path.empty()) {
      return Status(Code::kNotAcceptable,
                    "there is no kubeconfig to remember it in; say -p PROJECT instead");
    }
    SWELL_RETURN_IF_ERROR(SetNamespace(path, api->connection().context, project.ns));
    session.OutLine(StrCat("Project ", project.name, " has been set as default project"));
    return 0;
  }

 private:
  static Status SetNamespace(const std::string& path, std::string context, const std::string& ns) {
    SWELL_ASSIGN_OR_RETURN(std::string text, ReadFile(path, 4 << 20));
    auto documents = json::ParseYaml(text);
    if (!documents.ok()) return documents.status().WithContext(path);
    if (documents->size() != 1) return Status(Code::kInvalid, path + ": one document expected");
    json::Value config = std::move((*documents)[0]);
    if (context.empty()) context = json::GetString(config, {"current-context"});
    json::Value* contexts = json::FindMutable(config, {"contexts"});
    if (contexts != nullptr && contexts->is_array()) {
      for (json::Value& entry : contexts->get_array()) {
        if (json::GetString(entry, {"name"}) != context) continue;
        json::Set(entry, {"context", "namespace"}, ns);
        return WriteFileAtomically(path, json::PrintYaml(config), 0600);
      }
    }
    return Status(Code::kNotFound, StrCat(path, ": no context named ", Quote(context)));
  }
};

class ConfigViewAction final : public Action {
 public:
  void Declare(Flags&) override {}
  Result<int> Run(Session& session, std::vector<std::string>) override {
    SWELL_ASSIGN_OR_RETURN(Scope scope, FindScope(session, true));
    session.OutLine(StrCat("Project: ", scope.all ? "none" : scope.project.name));
    session.OutLine(StrCat("Namespace: ", scope.all ? session.Namespace() : scope.project.ns));
    session.OutLine(StrCat("Cluster: ", scope.api->connection().url));
    session.OutLine(StrCat("Kubeconfig: ", scope.api->connection().kubeconfig));
    return 0;
  }
};

class WhoamiAction final : public Action {
 public:
  void Declare(Flags&) override {}
  Result<int> Run(Session& session, std::vector<std::string>) override {
    SWELL_ASSIGN_OR_RETURN(Scope scope, FindScope(session, true));
    SWELL_ASSIGN_OR_RETURN(std::string user, UserName(session, *scope.api));
    session.OutLine(StrCat("User: ", user));
    session.OutLine(StrCat("Project: ", scope.all ? "none" : scope.project.name));
    session.OutLine(StrCat("Cluster: ", scope.api->connection().url));
    return 0;
  }
};

class VersionAction final : public Action {
 public:
  void Declare(Flags& flags) override { flags.Switch("--short", &short_, "the version alone"); }
  Result<int> Run(Session& session, std::vector<std::string>) override {
    session.OutLine(StrCat("Version: ", Version()));
    if (!short_) session.OutLine("  Commands of Run:ai, provided by Swell");
    return 0;
  }

 private:
  bool short_ = false;
};

}  // namespace

Command DeleteSpec() {
  Command command{
      .name = "delete",
      .aliases = {"del"},
      .summary = "Deletes workloads and their pods.",
      .usage = "JOB... | --all",
      .examples = {{"One", "runai delete train1 -p team-a"}},
      .completes = Completes::kJob,
      .make = Makes<DeleteAction>(),
  };
  Command job{
      .name = "job",
      .aliases = {"jobs", "workload"},
      .summary = "Deletes workloads.",
      .usage = "JOB...",
      .completes = Completes::kJob,
      .make = Makes<DeleteAction>(),
  };
  command.children.push_back(std::move(job));
  return command;
}

Command SuspendSpec(bool suspend) {
  const std::string name = suspend ? "suspend" : "resume";
  return {
      .name = name,
      .summary = suspend ? "Stops workloads and gives back their GPUs until they are resumed."
                         : "Lets suspended workloads run again, from their last checkpoint.",
      .usage = "JOB...",
      .examples = {{"One", StrCat("runai ", name, " train1 -p team-a")}},
      .completes = Completes::kJob,
      .make = [suspend] { return std::make_unique<SuspendAction>(suspend); },
  };
}

Command LogsSpec() {
  return {
      .name = "logs",
      .aliases = {"log"},
      .summary = "Prints what a workload has written.",
      .usage = "JOB",
      .examples = {{"Follow it", "runai logs train1 -p team-a -f"}},
      .completes = Completes::kJob,
      .make = Makes<LogsAction>(),
  };
}

Command ConfigSpec() {
  Command config{
      .name = "config",
      .summary = "Sets which project the commands are about.",
  };
  Command project{
      .name = "project",
      .summary = "Sets the default project, which kubectl then uses too.",
      .usage = "NAME",
      .examples = {{"From now on", "runai config project team-a"}},
      .make = Makes<ConfigProjectAction>(),
  };
  Command view{
      .name = "view",
      .summary = "Prints the project, the cluster and the kubeconfig in use.",
      .make = Makes<ConfigViewAction>(),
  };
  config.children = {std::move(project), std::move(view)};
  return config;
}

Command SetProjectSpec() {
  return {
      .name = "set",
      .summary = "Sets the default project, which kubectl then uses too.",
      .usage = "NAME",
      .examples = {{"From now on", "runai project set team-a"}},
      .make = Makes<ConfigProjectAction>(),
  };
}

Command WhoamiSpec() {
  return {
      .name = "whoami",
      .summary = "Says who you are to the cluster.",
      .make = Makes<WhoamiAction>(),
  };
}

Command VersionSpec() {
  return {
      .name = "version",
      .summary = "Prints the version.",
      .make = Makes<VersionAction>(),
  };
}

}  // namespace swell::cli::runai
