// swell health and swell stacks: which ranks of a job move, what those that do not are doing, and
// how a node is.
#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "cli/commands.h"
#include "cli/node_commands.h"
#include "cli/pods/interactive.h"
#include "cli/pods/pod_choice.h"
#include "cli/print/output.h"
#include "cli/print/text_table.h"
#include "cli/print/view_output.h"
#include "cli/views/job_table.h"
#include "cli/views/job_view.h"
#include "cli/views/node_faults.h"
#include "cli/views/own_namespaces.h"
#include "cli/views/view_json.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/progress.h"

namespace swell::cli {
namespace {

struct RankOfPod {
  json::SharedValue pod;
  api::RankProgress rank;
};

std::vector<RankOfPod> RanksOfJob(const JobView& job) {
  std::vector<RankOfPod> ranks;
  for (const json::SharedValue& pod : job.pods) {
    for (api::RankProgress& rank : api::RanksOf(*pod)) ranks.push_back({pod, std::move(rank)});
  }
  std::stable_sort(ranks.begin(), ranks.end(), [](const RankOfPod& a, const RankOfPod& b) {
    return a.rank.rank < b.rank.rank;
  });
  return ranks;
}

// Its numbers come from a log, so no process reports what it does.
bool IsFromLog(const api::RankProgress& rank) { return rank.pid == 0; }

bool HasProcesses(const JobView& job) {
  const std::vector<RankOfPod> ranks = RanksOfJob(job);
  return std::any_of(ranks.begin(), ranks.end(),
                     [](const RankOfPod& one) { return !IsFromLog(one.rank); });
}

// Why there is nothing to show.
std::string NoRanks(const JobView& job) {
  if (job.over()) return StrCat(job.name, " is over: ", job.StatusText(), "; none of it runs");
  if (job.RunningPods() == 0) {
    const bool again = job.last_pod_ended || job.status == "Suspended" || job.failure;
    const std::string why = job.status == "Suspended" ? "it is suspended" : job.Reason();
    return StrCat(job.name, again ? " does not run now" : " has not started yet",
                  why.empty() ? "" : ": ", why);
  }
  return StrCat("no rank of ", job.name,
                " reports what it does: only scripts that use Swell's Python SDK do");
}

// "50ms of 110ms": what of a step is the rank's own work.
std::string OwnText(const api::OwnPart& own) {
  if (own.windows == 0) return "-";
  const auto text = [](double ms) {
    return StrCat(static_cast<int64_t>(std::llround(std::min(ms, 1e12))), "ms");
  };
  return StrCat(text(own.own_ms), " of ", text(own.step_ms));
}

std::string_view StateOf(const api::RankProgress& rank, bool job_is_over) {
  if (rank.stalled && !job_is_over) return "stuck";
  if (rank.done()) return "done";
  if (job_is_over) return "ended";
  return IsFromLog(rank) ? "by its log" : "moves";
}

json::Object RankJson(const RankOfPod& one) {
  const api::RankProgress& rank = one.rank;
  return json::Object{{"rank", rank.rank},
                      {"pod", api::Name(*one.pod)},
                      {"node", TextJson(api::NodeName(*one.pod))},
                      {"phase", TextJson(rank.phase)},
                      {"step", rank.step},
                      {"totalSteps", rank.total > 0 ? json::Value(rank.total) : json::Value()},
                      {"lastChangedTime", TimeJson(rank.changed)}};
}

std::string Ago(WallTime then, WallTime now) {
  return api::HumanDuration(std::max(now - then, Duration(0)));
}

// Conditions that say how a job fares, of those that hold.
void PrintConditions(Session& session, const json::Value& object) {
  const bool over =
      api::ConditionIsTrue(object, "Succeeded") || api::ConditionIsTrue(object, "Failed");
  for (const api::Condition& condition : api::Conditions(object)) {
    if (over && condition.type == "Running") continue;
    const bool good = condition.type == "Ready" || condition.type == "Running" ||
                      condition.type == "Created" || condition.type == "Succeeded";
    if (good == (condition.status == "True")) continue;
    if (condition.status != "True" && !good) continue;
    session.OutLine(
        StrCat(condition.type, good ? " is not true" : "", ": ", OneLine(condition.message)));
  }
}

json::Value JobHealthJson(const JobView& job, const std::vector<std::string>& places) {
  json::Array ranks;
  for (const RankOfPod& one : RanksOfJob(job)) {
    json::Object rank = RankJson(one);
    const api::OwnPart& own = one.rank.own;
    rank["ownMs"] = own.windows > 0 ? json::Value(own.own_ms) : json::Value();
    rank["stepMs"] = own.windows > 0 ? json::Value(own.step_ms) : json::Value();
    rank["deadlineSeconds"] = one.rank.deadline_seconds;
    rank["state"] = StateOf(one.rank, job.over());
    rank["stuckAt"] = TextJson(one.rank.stalled && !job.over() ? one.rank.Top() : "");
    ranks.push_back(std::move(rank));
  }
  json::Object out = JobJson(job);
  out["conditions"] = ConditionsJson(*job.object);
  out["unhealthy"] = json::Array(places.begin(), places.end());
  out["ranks"] = std::move(ranks);
  return out;
}

class HealthAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Switch("-A,--all-namespaces", &all_namespaces_, "all namespaces");
    output_.Declare(flags);
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (words.size() > 1) return Misuse("expected one job or node: swell health [JOB | NODE]");
    SWELL_RETURN_IF_ERROR(output_.Check());
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    if (words.empty()) return Overview(session, *api);
    if (const std::string_view name = NodeNamed(words[0]); !name.empty()) {
      SWELL_ASSIGN_OR_RETURN(const auto node, api->Get(client::resources::kNodes, "", name));
      return PrintNodeHealth(session, *api, *node, output_);
    }
    auto job = FindJob(*api, session.Namespace(), words[0]);
    if (job.ok()) return Job(session, *api, *job);
    if (job.status().code() != Code::kNotFound) return job.status();
    auto node = api->Get(client::resources::kNodes, "", words[0]);
    if (node.status().code() == Code::kNotFound) {
      return Status(Code::kNotFound,
                    StrCat("no node ", Quote(words[0]), ", and ", job.status().message()));
    }
    if (!node.ok()) return job.status();
    return PrintNodeHealth(session, *api, **node, output_);
  }

 private:
  // "node/node-1" → "node-1"; empty: a job may be meant.
  static std::string_view NodeNamed(std::string_view word) {
    for (std::string_view kind : {"node/", "nodes/", "no/"}) {
      if (word.starts_with(kind)) return word.substr(kind.size());
    }
    return {};
  }

  Result<int> Overview(Session& session, Api& api) const {
    SWELL_ASSIGN_OR_RETURN(const NodeFaultTable faults, ReadNodeFaults(session, api));
    SWELL_ASSIGN_OR_RETURN(const std::vector<JobView> jobs,
                           ListShownJobs(session, api, all_namespaces_ ? "" : session.Namespace()));
    if (output_.is_document()) {
      output_.Print(session, json::Object{{"nodes", faults.list}, {"jobs", JobsJson(jobs)}});
      return 0;
    }
    if (!faults.text.empty()) {
      session.OutLine(StrCat(
          faults.list.size(), " of ", faults.nodes, faults.nodes == 1 ? " node" : " nodes",
          faults.list.size() == 1 ? " needs" : " need", " attention; more: swell health NODE"));
      session.Out(faults.text + "\n");
    } else if (faults.nodes > 0) {
      session.OutLine(faults.nodes == 1 ? "The node is healthy"
                                        : StrCat("All ", faults.nodes, " nodes are healthy"));
    }
    if (Jobs(session, jobs) > 0) return 0;
    std::string where;
    if (!all_namespaces_) where = StrCat(" in namespace ", session.Namespace());
    session.ErrLine(StrCat("No job that runs", where, " reports its progress",
                           all_namespaces_ ? "" : "; -A shows those of all namespaces"));
    return 0;
  }

  static json::Array JobsJson(const std::vector<JobView>& jobs) {
    json::Array list;
    for (const JobView& job : jobs) {
      if (!job.progress || job.over()) continue;
      list.push_back(json::Object{{"namespace", job.ns},
                                  {"name", job.ResourceName()},
                                  {"status", job.StatusText()},
                                  {"phase", job.progress->phase},
                                  {"step", job.progress->step},
                                  {"totalSteps", job.progress->total},
                                  {"lastUpdatedTime", api::FormatTime(job.progress->updated)}});
    }
    return list;
  }

  // How many it has printed.
  static size_t Jobs(Session& session, const std::vector<JobView>& jobs) {
    TextTable table({"NAMESPACE", "NAME", "STATUS", "PHASE", "STEP", "PROGRESS", "ETA", "CHANGED"});
    for (const JobView& job : jobs) {
      if (!job.progress || job.over()) continue;
      const std::string status = job.StatusText();
      table.Add({job.ns, job.name, session.Paint(StatusColour(status), status),
                 OrDash(OneLine(job.progress->phase)), StrCat(job.progress->step),
                 job.progress->percentage ? ProgressText(job) : "-", EtaText(job),
                 Ago(job.progress->updated, session.Now())});
    }
    const size_t count = table.size() - 1;
    if (count > 0) session.Out(table.ToString());
    return count;
  }

  Result<int> Job(Session& session, Api& api, const JobView& job) const {
    std::vector<std::string> places;
    if (!job.over()) {
      SWELL_ASSIGN_OR_RETURN(places, FindUnhealthyPlaces(api, job.pods));
    }
    if (output_.is_document()) {
      output_.Print(session, JobHealthJson(job, places));
      return 0;
    }
    const std::string status = job.StatusText();
    session.OutLine(StrCat(job.name, ": ", session.Paint(StatusColour(status), status)));
    PrintConditions(session, *job.object);
    for (const std::string& place : places) {
      session.OutLine(session.Paint(Colour::kRed, OneLine(place)));
    }
    const std::vector<RankOfPod> ranks = RanksOfJob(job);
    if (ranks.empty()) {
      session.ErrLine(NoRanks(job));
      return 0;
    }
    TextTable table(
        {"RANK", "POD", "NODE", "PHASE", "STEP", "OWN WORK", "CHANGED", "DEADLINE", "STATE"});
    for (const RankOfPod& one : ranks) {
      const std::string_view state = StateOf(one.rank, job.over());
      table.Add(
          {StrCat(one.rank.rank), std::string(api::Name(*one.pod)),
           OrDash(std::string(api::NodeName(*one.pod))), OrDash(OneLine(one.rank.phase)),
           one.rank.total > 0 ? StrCat(one.rank.step, "/", one.rank.total) : StrCat(one.rank.step),
           OwnText(one.rank.own), Ago(one.rank.changed, session.Now()),
           IsFromLog(one.rank) ? "-" : StrCat(one.rank.deadline_seconds, "s"),
           state == "stuck"
               ? session.Paint(Colour::kRed, StrCat("stuck: ", OneLine(one.rank.Top())))
               : session.Paint(Colour::kGreen, state)});
    }
    session.Out(table.ToString());
    if (ranks.size() > 1 && !job.over()) {
      session.OutLine(
          "The first rank reports every 10 s, the others every minute; a rank that stalls reports "
          "at once.");
    }
    return 0;
  }

  bool all_namespaces_ = false;
  ViewOutput output_;
};

class StacksAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Text("--rank", &rank_, "N", "only this rank (default: all)");
    output_.Declare(flags);
  }
  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (words.size() != 1) return Misuse("expected a job: swell stacks JOB");
    const auto only = ParseInt(rank_);
    if (!rank_.empty() && (!only || *only < 0)) {
      return Misuse(StrCat("--rank ", Quote(rank_), ": expected a number from 0"));
    }
    SWELL_RETURN_IF_ERROR(output_.Check());
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    SWELL_ASSIGN_OR_RETURN(const JobView job, FindJob(*api, session.Namespace(), words[0]));
    bool found = false;
    json::Array ranks;
    for (const RankOfPod& one : RanksOfJob(job)) {
      if (IsFromLog(one.rank) || (only && one.rank.rank != *only)) continue;
      found = true;
      if (output_.is_document()) {
        std::string stack;
        SWELL_RETURN_IF_ERROR(Read(session, one, &stack));
        json::Object rank = RankJson(one);
        rank["ended"] = api::HasEnded(*one.pod);
        rank["stack"] = TextJson(stack);
        ranks.push_back(std::move(rank));
        continue;
      }
      session.OutLine(StrCat("rank ", one.rank.rank, ", pod ", api::Name(*one.pod), " on ",
                             api::NodeName(*one.pod), ": phase ", OneLine(one.rank.phase),
                             ", step ", one.rank.step));
      SWELL_RETURN_IF_ERROR(Print(session, one));
    }
    if (found && output_.is_document()) {
      output_.Print(session, json::Object{{"namespace", job.ns},
                                          {"name", job.name},
                                          {"kind", job.kind->kind},
                                          {"ranks", std::move(ranks)}});
    }
    if (found) return 0;
    return Status(Code::kNotFound, only && HasProcesses(job)
                                       ? StrCat("no pod of ", job.name, " reports rank ", *only)
                                       : NoRanks(job));
  }

 private:
  static Status Print(Session& session, const RankOfPod& one) {
    if (api::HasEnded(*one.pod)) {
      session.OutLine(one.rank.stack.empty() ? "the pod has ended" : one.rank.stack);
      return Status::Ok();
    }
    return Read(session, one, nullptr);
  }

  // Prints to the terminal, or into `stack` if that is given. A pod that has ended shows its last
  // stacks.
  static Status Read(Session& session, const RankOfPod& one, std::string* stack) {
    if (stack != nullptr && api::HasEnded(*one.pod)) {
      *stack = one.rank.stack;
      return Status::Ok();
    }
    InteractiveCommand command;
    command.quiet = true;
    command.output = stack;
    command.command.ns = api::Namespace(*one.pod);
    command.command.pod = api::Name(*one.pod);
    command.command.container = DefaultContainer(*one.pod);
    command.command.command = {"/bin/sh", "-c", api::StacksScript(one.rank)};
    return RunInteractive(session, std::move(command)).status();
  }

  std::string rank_;
  ViewOutput output_;
};

}  // namespace

Command HealthCommandSpec() {
  return {
      .name = "health",
      .group = "Jobs",
      .summary = "Show the health of nodes and jobs, of one job's ranks, or of one node.",
      .usage = "[JOB | NODE]",
      .examples = {{"Nodes with faults, and all jobs that report their progress", "swell health"},
                   {"The ranks of a job: phase, step, last change", "swell health mnist"},
                   {"A node: conditions, GPUs, what failed there", "swell health node-1"},
                   {"For a program", "swell health mnist -o json"}},
      .completes = Completes::kJob,
      .make = Makes<HealthAction>(),
  };
}

Command StacksCommandSpec() {
  return {
      .name = "stacks",
      .group = "Jobs",
      .summary = "Print what each rank of a job is doing now: the stacks of its Python threads.",
      .usage = "JOB",
      .examples = {{"All ranks", "swell stacks mnist"},
                   {"The third rank", "swell stacks mnist --rank 2"}},
      .notes = "Training continues meanwhile. The script must use Swell's Python SDK.",
      .completes = Completes::kJob,
      .make = Makes<StacksAction>(),
  };
}

}  // namespace swell::cli
