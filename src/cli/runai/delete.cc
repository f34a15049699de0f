// runai delete, suspend, resume.
#include "base/strings.h"
#include "cli/runai/runai.h"

namespace swell::cli::runai {
namespace {

class DeleteAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Switch("-A,--all", &all_, "all workloads of the project");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (words.empty() != all_) return Misuse("expected names: runai delete WORKLOAD..., or --all");
    SWELL_ASSIGN_OR_RETURN(Scope scope,
                           FindScope(session, all_ ? NoProject::kIsRefused : NoProject::kMeansAll));
    std::vector<JobView> jobs;
    int failed = 0;
    if (all_) {
      SWELL_ASSIGN_OR_RETURN(jobs, ListWorkloads(session, scope));
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
    if (words.empty()) return Misuse(StrCat("expected names: runai ", verb, " WORKLOAD..."));
    SWELL_ASSIGN_OR_RETURN(Scope scope, FindScope(session, NoProject::kMeansAll));
    for (const std::string& word : words) {
      SWELL_ASSIGN_OR_RETURN(JobView job, FindWorkload(session, scope, word));
      SWELL_ASSIGN_OR_RETURN(const bool changed, SetSuspended(*scope.api, job, suspend_));
      const std::string name = StrCat("The job '", job.name, "' ");
      if (!changed) {
        session.OutLine(StrCat(name, suspend_ ? "is already suspended" : "is not suspended"));
        continue;
      }
      if (suspend_ && job.RunsUnsaved()) {
        session.OutLine(StrCat(name, job.SuspensionWaitText()));
        continue;
      }
      session.OutLine(
          StrCat(name, "has been ", suspend_ ? "suspended" : "resumed", " successfully"));
    }
    return 0;
  }

 private:
  bool suspend_;
};

}  // namespace

Command DeleteSpec() {
  Command command{
      .name = "delete",
      .aliases = {"del"},
      .summary = "Delete workloads and their pods.",
      .usage = "WORKLOAD... | --all",
      .examples = {{"A workload", "runai delete train1 -p team-a"}},
      .completes = Completes::kJob,
      .make = Makes<DeleteAction>(),
  };
  Command job{
      .name = "job",
      .aliases = {"jobs", "workload"},
      .summary = "Delete workloads.",
      .usage = "WORKLOAD...",
      .completes = Completes::kJob,
      .make = Makes<DeleteAction>(),
  };
  command.children.push_back(std::move(job));
  return command;
}

namespace {

// `kind_summary`: the summary of the commands that name a kind of workloads.
Command MakeSuspension(const std::string& name,
                       const std::string& summary,
                       const std::string& kind_summary,
                       std::function<std::unique_ptr<Action>()> make) {
  Command command{
      .name = name,
      .summary = summary,
      .usage = "WORKLOAD...",
      .examples = {{"A workload", StrCat("runai ", name, " train1 -p team-a")}},
      .completes = Completes::kJob,
      .make = std::move(make),
  };
  Command job{
      .name = "job",
      .aliases = {"jobs", "workload"},
      .summary = kind_summary,
      .usage = command.usage,
      .completes = command.completes,
      .make = command.make,
  };
  command.children.push_back(std::move(job));
  return command;
}

}  // namespace

Command SuspendSpec() {
  return MakeSuspension("suspend", "Suspend workloads: stop their pods and release their GPUs.",
                        "Suspend workloads.", [] { return std::make_unique<SuspendAction>(true); });
}

Command ResumeSpec() {
  return MakeSuspension("resume", "Resume suspended workloads from their last checkpoint.",
                        "Resume workloads.", [] { return std::make_unique<SuspendAction>(false); });
}

}  // namespace swell::cli::runai
