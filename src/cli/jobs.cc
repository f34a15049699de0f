// swell list, suspend, resume: jobs of every kind in one table.
#include <algorithm>

#include "api/meta.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "cli/text_table.h"

namespace swell::cli {
namespace {

std::string TookOrTakes(const JobView& job, WallTime now) {
  if (!job.started) return "-";
  return api::HumanDuration(std::max(job.ended.value_or(now) - *job.started, Duration(0)));
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

class ListAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Switch("-A,--all-namespaces", &all_namespaces_, "in every namespace");
    flags.Text("--status", &status_, "WORD", "only these: pending, running, failed, …");
    flags.Text("-o,--output", &output_, "FORMAT", "json, yaml, wide, name or jsonpath=TEMPLATE");
    flags.Switch("--no-headers", &no_headers_, "without the first line");
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (!words.empty()) return Misuse(StrCat("unexpected ", Quote(words[0])));
    SWELL_ASSIGN_OR_RETURN(OutputForm form, ParseOutputForm(output_));
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    std::string ns = all_namespaces_ ? "" : session.Namespace();
    SWELL_ASSIGN_OR_RETURN(std::vector<JobView> jobs, ListJobs(*api, ns));
    if (!status_.empty()) {
      std::erase_if(jobs,
                    [&](const JobView& job) { return ToLower(job.status) != ToLower(status_); });
    }
    if (!form.table()) return Print(session, form, jobs);
    if (jobs.empty()) {
      session.ErrLine(ns.empty() ? "No jobs" : StrCat("No jobs in namespace ", ns));
      return 0;
    }
    session.Out(Table(session, jobs, form.kind == OutputForm::Kind::kWide));
    return 0;
  }

 private:
  static int Print(Session& session, const OutputForm& form, const std::vector<JobView>& jobs) {
    std::vector<json::SharedValue> objects;
    for (const JobView& job : jobs) {
      auto object = std::make_shared<json::Value>(*job.object);
      json::Set(*object, {"kind"}, job.kind->kind);
      json::Set(*object, {"apiVersion"}, job.kind->resource.ApiVersion());
      objects.push_back(std::move(object));
      if (form.kind == OutputForm::Kind::kName) session.OutLine(job.ResourceName());
    }
    if (form.kind != OutputForm::Kind::kName)
      session.Out(FormatObject(form, MakeList(objects), ""));
    return 0;
  }

  std::string Table(Session& session, const std::vector<JobView>& jobs, bool wide) const {
    std::vector<std::string> header{"NAME", "KIND", "STATUS",   "PRIORITY", "PROJECT",
                                    "GPUS", "PODS", "DURATION", "AGE"};
    if (all_namespaces_) header.insert(header.begin(), "NAMESPACE");
    if (wide) header.emplace_back("MESSAGE");
    TextTable table(no_headers_ ? std::vector<std::string>{} : header);
    for (const JobView& job : jobs) {
      std::vector<std::string> row{
          job.name,
          job.kind->kind,
          session.Paint(StatusColour(job.status), job.status),
          OrDash(job.priority),
          OrDash(job.project),
          GpuText(job.milli_gpus),
          StrCat(job.RunningPods(), "/", job.replicas),
          TookOrTakes(job, session.Now()),
          job.created ? api::HumanDuration(std::max(session.Now() - *job.created, Duration(0)))
                      : "-"};
      if (all_namespaces_) row.insert(row.begin(), job.ns);
      if (wide) row.push_back(OrDash(OneLine(job.waits.empty() ? job.message : job.waits)));
      table.Add(std::move(row));
    }
    return table.ToString();
  }

  bool all_namespaces_ = false, no_headers_ = false;
  std::string status_, output_;
};

class SuspendAction final : public Action {
 public:
  explicit SuspendAction(bool suspend) : suspend_(suspend) {}
  void Declare(Flags&) override {}
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (words.empty()) {
      return Misuse(StrCat("say which job: swell ", suspend_ ? "suspend" : "resume", " JOB"));
    }
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    for (const std::string& word : words) {
      SWELL_ASSIGN_OR_RETURN(JobView job, FindJob(*api, session.Namespace(), word));
      SWELL_RETURN_IF_ERROR(SetSuspended(*api, job, suspend_));
      session.OutLine(StrCat(job.ResourceName(), suspend_ ? " suspended" : " resumed"));
    }
    return 0;
  }

 private:
  bool suspend_;
};

}  // namespace

Command ListCommandSpec() {
  Command command;
  command.name = "list";
  command.aliases = {"ls", "jobs"};
  command.group = "Jobs";
  command.summary = "Lists the jobs of every kind: status, priority, GPUs, pods, age.";
  command.examples = {{"The jobs of this namespace", "swell list"},
                      {"What waits anywhere, and why", "swell list -A --status pending -o wide"},
                      {"Names alone, for scripts", "swell list -o name"}};
  command.make = Makes<ListAction>();
  return command;
}

Command SuspendCommandSpec() {
  Command command;
  command.name = "suspend";
  command.group = "Jobs";
  command.summary = "Stops a job's pods and gives back its GPUs until it is resumed.";
  command.usage = "JOB...";
  command.examples = {{"Make room for now", "swell suspend mnist"}};
  command.completes = Completes::kJob;
  command.make = [] { return std::make_unique<SuspendAction>(true); };
  return command;
}

Command ResumeCommandSpec() {
  Command command;
  command.name = "resume";
  command.group = "Jobs";
  command.summary = "Lets a suspended job run again, from its last checkpoint.";
  command.usage = "JOB...";
  command.examples = {{"Go on", "swell resume mnist"}};
  command.completes = Completes::kJob;
  command.make = [] { return std::make_unique<SuspendAction>(false); };
  return command;
}

}  // namespace swell::cli
