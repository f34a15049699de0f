// swell list, get without a kind, suspend, resume: jobs of every kind in one table.
#include <algorithm>

#include "base/strings.h"
#include "cli/commands.h"
#include "cli/print/output.h"
#include "cli/print/text_table.h"
#include "cli/views/job_table.h"
#include "cli/views/job_view.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/job.h"

namespace swell::cli {
namespace {

std::string TookOrTakes(const JobView& job, WallTime now) {
  const std::optional<Duration> run = job.RunTime(now);
  return run ? api::HumanDuration(*run) : "-";
}

std::string Age(const JobView& job, WallTime now) {
  return job.created ? api::HumanDuration(std::max(now - *job.created, Duration(0))) : "-";
}

std::string StatusCell(Session& session, const JobView& job) {
  const std::string text = job.StatusText();
  return session.Paint(StatusColour(text), text);
}

class ListAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Switch("-A,--all-namespaces", &all_namespaces_, "all namespaces");
    flags.Switch("-w,--watch", &watch_, "print changes as they happen");
    flags.Switch("--active", &active_, "only jobs that are not over");
    flags.Text("--status", &status_, "WORD",
               "only jobs with this status: pending, running, failed, …");
    flags.Text("-o,--output", &output_, "FORMAT",
               "output format: json, yaml, wide, name or jsonpath=TEMPLATE");
    flags.Switch("--no-headers", &no_headers_, "omit the header");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    SWELL_ASSIGN_OR_RETURN(OutputForm form, ParseOutputForm(output_));
    constexpr std::string_view kStatuses[] = {
        "pending",      "waiting",         "running",   "preempted", "restarting",
        "hung",         "suspended",       "succeeded", "failed",    "crashloopbackoff",
        "errimagepull", "imagepullbackoff"};
    if (!status_.empty() && std::find(std::begin(kStatuses), std::end(kStatuses),
                                      ToLower(status_)) == std::end(kStatuses)) {
      return WrongValue("--status", status_, {std::begin(kStatuses), std::end(kStatuses)});
    }
    JobTable table{.session = session, .form = form, .all_namespaces = all_namespaces_};
    table.ns = all_namespaces_ ? "" : session.Namespace();
    table.status = status_;
    table.names = std::move(words);
    table.active = active_;
    table.by_state = true;
    table.headers = !no_headers_;
    table.projects = form.table();
    table.header = {"NAME", "KIND",     "STATUS", "PRIORITY", "PROJECT", "GPUS",
                    "PODS", "DURATION", "AGE",    "PROGRESS", "ETA"};
    if (form.kind == OutputForm::Kind::kWide) table.header.emplace_back("MESSAGE");
    bool wide = form.kind == OutputForm::Kind::kWide;
    table.row = [&session, wide](const JobView& job) { return Row(session, job, wide); };
    return watch_ ? table.Watch() : table.Show();
  }

 private:
  static std::vector<std::string> Row(Session& session, const JobView& job, bool wide) {
    std::vector<std::string> row{job.name,
                                 job.kind->kind,
                                 StatusCell(session, job),
                                 OrDash(job.priority),
                                 OrDash(job.project),
                                 GpuText(job.milli_gpus),
                                 PodsText(job),
                                 TookOrTakes(job, session.Now()),
                                 Age(job, session.Now()),
                                 ProgressText(job),
                                 EtaText(job)};
    const std::string reason = job.Reason();
    if (wide) row.push_back(OrDash(OneLine(reason.empty() ? job.message : reason)));
    return row;
  }

  bool all_namespaces_ = false, no_headers_ = false, watch_ = false, active_ = false;
  std::string status_, output_;
};

class SuspendAction final : public Action {
 public:
  explicit SuspendAction(bool suspend) : suspend_(suspend) {}
  void Declare(Flags& flags) override {
    if (!suspend_) return;
    flags.Switch("--force", &force_,
                 "suspend even if the job could not save its work, which is lost then");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (words.empty()) {
      return Misuse(StrCat("no job named: swell ", suspend_ ? "suspend" : "resume", " JOB"));
    }
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    for (const std::string& word : words) {
      SWELL_ASSIGN_OR_RETURN(JobView job, FindJob(*api, session.Namespace(), word));
      SWELL_RETURN_IF_ERROR(NoteForce(*api, job));
      SWELL_ASSIGN_OR_RETURN(const bool changed, SetSuspended(*api, job, suspend_));
      session.OutLine(StrCat(job.ResourceName(), " ", Outcome(job, changed)));
      if (suspend_ && changed && job.ReportsNoCheckpoint()) {
        session.ErrLine(StrCat(job.name,
                               " reported no checkpoint: unless its script saves and resumes by "
                               "itself, it will begin anew (docs/training.md)"));
      }
    }
    return 0;
  }

 private:
  // `job`: as it was.
  std::string Outcome(const JobView& job, bool changed) const {
    if (!suspend_) return changed ? "resumed" : "is not suspended";
    if (job.RunsUnsaved() && force_) return "suspended without a save";
    if (!job.RunsUnsaved()) return changed ? "suspended" : "is already suspended";
    return job.SuspensionWaitText();
  }

  // A job that is resumed is not forced when it is suspended next.
  Status NoteForce(Api& api, const JobView& job) const {
    const bool is = !api::Annotation(*job.object, api::keys::kSuspendUnsaved).empty();
    if (is == force_) return Status::Ok();
    json::Value patch = json::Object{};
    json::Set(patch, {"metadata", "annotations", api::keys::kSuspendUnsaved},
              force_ ? json::Value("true") : json::Value(nullptr));
    return api.Patch(job.kind->resource, job.ns, job.name, client::PatchType::kMerge, patch)
        .status();
  }

  bool suspend_;
  bool force_ = false;
};

}  // namespace

JobTable JobSizes(Session& session, const OutputForm& form, bool all_namespaces) {
  JobTable table{.session = session, .form = form, .all_namespaces = all_namespaces};
  table.ns = all_namespaces ? "" : session.Namespace();
  table.header = {"NAME", "KIND", "STATUS", "MIN", "NOW", "DESIRED", "MAX", "AGE", "WHY"};
  table.row = [&session](const JobView& job) {
    // The elastic members only, as `describe` and kubectl show it.
    const auto size = api::SizeOfJob(*job.object);
    return std::vector<std::string>{job.name,
                                    job.kind->kind,
                                    StatusCell(session, job),
                                    StrCat(size ? size->least : job.least),
                                    StrCat(size ? size->replicas : job.RunningPods()),
                                    StrCat(size ? size->desired.value_or(0) : job.replicas),
                                    StrCat(size ? size->most : job.most),
                                    Age(job, session.Now()),
                                    OrDash(job.status == "Succeeded" ? "" : OneLine(job.Reason()))};
  };
  return table;
}

Command ListCommandSpec() {
  return {
      .name = "list",
      .aliases = {"ls", "jobs"},
      .group = "Jobs",
      .summary =
          "List jobs with status, priority, GPUs, pods and age: those that run, those that "
          "wait, then those that are over.",
      .usage = "[JOB | ARRAY]...",
      .examples = {{"Jobs of this namespace", "swell list"},
                   {"Without those that are over", "swell list --active"},
                   {"One job, or the jobs of an array", "swell list sweep"},
                   {"Pending jobs of all namespaces, with reasons",
                    "swell list -A --status pending -o wide"},
                   {"Watch the jobs", "swell list -w"},
                   {"Names only, for scripts", "swell list -o name"}},
      .completes = Completes::kJob,
      .make = Makes<ListAction>(),
  };
}

Command SuspendCommandSpec() {
  return {
      .name = "suspend",
      .group = "Jobs",
      .summary = "Suspend jobs: stop their pods and release their GPUs.",
      .usage = "JOB...",
      .examples = {{"Release the GPUs of a job for now", "swell suspend mnist"}},
      .completes = Completes::kJob,
      .make = [] { return std::make_unique<SuspendAction>(true); },
  };
}

Command ResumeCommandSpec() {
  return {
      .name = "resume",
      .group = "Jobs",
      .summary = "Resume suspended jobs from their last checkpoint.",
      .usage = "JOB...",
      .examples = {{"Continue a job", "swell resume mnist"}},
      .completes = Completes::kJob,
      .make = [] { return std::make_unique<SuspendAction>(false); },
  };
}

}  // namespace swell::cli
