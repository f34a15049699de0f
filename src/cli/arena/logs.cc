// arena logs, attach, logviewer.
#include "base/strings.h"
#include "cli/arena/arena.h"
#include "cli/pods/exec_in.h"
#include "cli/pods/job_logs.h"
#include "kube/api/meta/meta.h"

namespace swell::cli::arena {
namespace {

class LogsAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    options_.Declare(flags);
    flags.Text("-i,--instance", &instance_, "POD", "instance (default: the chief)");
    type_.Declare(flags);
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(type_.Check());
    SWELL_RETURN_IF_ERROR(options_.Check());
    if (words.size() != 1) return Misuse("expected the name of one job: arena logs JOB");
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(JobView job, FindArenaJob(session, *api, words[0], type_));
    options_.member = instance_;
    const bool none =
        job.pods.empty() && json::GetArray(*job.object, {"status", "attempts"}).empty();
    if (none) {
      return Status(Code::kNotFound,
                    StrCat("the job ", job.name, " has no instance yet: it is ", StatusWord(job),
                           job.waits.empty() ? "" : "; ", job.waits));
    }
    SWELL_RETURN_IF_ERROR(PrintJobLogs(session, *api, std::move(job), options_));
    return 0;
  }

 private:
  JobLogOptions options_;
  TypeFlag type_;
  std::string instance_;
};

class AttachAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Text("-i,--instance", &instance_, "POD", "instance (default: the chief)");
    flags.Text("-c,--container", &container_, "NAME", "container");
    type_.Declare(flags);
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(type_.Check());
    if (words.empty()) return Misuse("expected the name of one job: arena attach JOB [COMMAND]");
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(JobView job, FindArenaJob(session, *api, words[0], type_));
    for (const json::SharedValue& pod : job.pods) {
      if (!instance_.empty() && api::Name(*pod) != instance_) continue;
      std::vector<std::string> command(words.begin() + 1, words.end());
      if (command.empty()) command.emplace_back("/bin/bash");
      return Exec(session, {.ns = job.ns,
                            .pod = std::string(api::Name(*pod)),
                            .container = container_,
                            .command = std::move(command),
                            .interactive = true});
    }
    return Status(Code::kNotFound, StrCat("the job ", job.name, " has no instance",
                                          instance_.empty() ? " yet" : " " + Quote(instance_)));
  }

 private:
  TypeFlag type_;
  std::string instance_, container_;
};

class LogviewerAction final : public Action {
 public:
  void Declare(Flags& flags) override { type_.Declare(flags); }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(type_.Check());
    if (words.size() != 1) return Misuse("expected the name of one job: arena logviewer JOB");
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(JobView job, FindArenaJob(session, *api, words[0], type_));
    return Status(Code::kNotFound, StrCat("No LogViewer URL for the job ", job.name,
                                          "; arena logs ", job.name, " prints its log"));
  }

 private:
  TypeFlag type_;
};

}  // namespace

Command LogsSpec() {
  return {
      .name = "logs",
      .aliases = {"log"},
      .summary = "Print the log of a training job's chief or another instance.",
      .usage = "JOB",
      .examples = {{"Follow the chief", "arena logs mnist -f"},
                   {"The last lines of a worker", "arena logs mnist -i mnist-worker-1 --tail 20"}},
      .completes = Completes::kJob,
      .make = Makes<LogsAction>(),
  };
}

Command AttachSpec() {
  return {
      .name = "attach",
      .summary = "Run a command, or a shell, in an instance.",
      .usage = "JOB [-- COMMAND]",
      .examples = {{"A shell in the chief", "arena attach mnist"}},
      .make = Makes<AttachAction>(),
  };
}

Command LogviewerSpec() {
  return {
      .name = "logviewer",
      .summary = "Show the URL of a job's log viewer.",
      .usage = "JOB",
      .make = Makes<LogviewerAction>(),
  };
}

}  // namespace swell::cli::arena
