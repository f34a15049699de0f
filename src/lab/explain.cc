#include "lab/explain.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/decimal.h"
#include "base/strings.h"
#include "lab/free_gpus.h"

namespace swell::lab {
namespace {

constexpr size_t kOthersMax = 4;  // other jobs that are named for one decision
constexpr size_t kNamesMax = 8;   // names of jobs in an error

std::string Gpus(size_t count) { return StrCat(count, count == 1 ? " GPU" : " GPUs"); }

size_t SizeOf(const Allocations& all, int number) {
  const auto found = all.find(number);
  return found == all.end() ? 0 : found->second.size();
}

double GoodputOf(const SimJob& job, const Allocation& allocation) {
  const auto nodes = static_cast<int>(PlacementOf(allocation).size());
  return job.EstimatedGoodput(nodes, static_cast<int>(allocation.size()));
}

// "+61 % goodput"; empty where it begins or ends with nothing.
std::string ChangeOfGoodput(const ActiveJob& active, const DecisionSeen& seen) {
  const auto before = seen.before.find(active.number), after = seen.after.find(active.number);
  if (before == seen.before.end() || after == seen.after.end()) return "";
  const double was = GoodputOf(*active.job, before->second);
  const double is = GoodputOf(*active.job, after->second);
  if (!(was > 0)) return "";
  char text[48];
  std::snprintf(text, sizeof text, "%+.0f %% goodput", (is / was - 1) * 100);
  return text;
}

// "started on 4 GPUs", "grew from 2 to 4 GPUs (+61 % goodput)". Empty: nothing changed.
std::string ChangeOf(const ActiveJob& active, const DecisionSeen& seen) {
  const size_t was = SizeOf(seen.before, active.number), is = SizeOf(seen.after, active.number);
  if (was == 0 && is == 0) return "";
  if (was == 0) {
    return StrCat(active.job->started_s() ? "resumed on " : "started on ", Gpus(is));
  }
  if (is == 0) return StrCat("gave up all of its ", Gpus(was));
  if (seen.before.at(active.number) == seen.after.at(active.number)) return "";
  const std::string goodput = ChangeOfGoodput(active, seen);
  const std::string suffix = goodput.empty() ? "" : StrCat(" (", goodput, ")");
  if (was == is) return StrCat("moved with its ", Gpus(was), suffix);
  return StrCat(is > was ? "grew" : "shrank", " from ", was, " to ", Gpus(is), suffix);
}

// "job-b shrank from 4 to 2 GPUs (-4 % goodput)", of all that changed but one.
std::string OthersOf(int number, const DecisionSeen& seen) {
  std::string text;
  size_t count = 0;
  for (const ActiveJob& active : seen.jobs) {
    if (active.number == number) continue;
    const std::string change = ChangeOf(active, seen);
    if (change.empty() || ++count > kOthersMax) continue;
    text += StrCat("    ", active.job->trace().name, " ", change, "\n");
  }
  if (count > kOthersMax) text += StrCat("    and ", count - kOthersMax, " more jobs changed\n");
  return text;
}

// "at 2026-11-24 10:05:00 (+60 s)", or "at 60 s" where no calendar is known.
std::string At(const Trace& trace, int64_t now_s) {
  if (trace.began_s == 0) return StrCat("at ", now_s, " s");
  return StrCat("at ", InstantText(trace.began_s + now_s), " (+", now_s, " s)");
}

class Life {
 public:
  Life(const Trace& trace, int number) : trace_(trace), number_(number) {}

  void OnDecision(const DecisionSeen& seen) {
    const auto active =
        std::find_if(seen.jobs.begin(), seen.jobs.end(),
                     [this](const ActiveJob& one) { return one.number == number_; });
    if (active == seen.jobs.end()) return;
    std::string change = ChangeOf(*active, seen);
    const bool holds = SizeOf(seen.after, number_) > 0;
    if (change.empty() && !holds && !waits_) {
      size_t held = 0;
      for (const auto& [number, allocation] : seen.after) held += allocation.size();
      change = StrCat("waited: ", Gpus(held), " of ", seen.after.size(),
                      seen.after.size() == 1 ? " job" : " jobs", " in use");
    }
    waits_ = !holds;
    if (change.empty()) return;
    if (++lines_ > kLinesMax) return;
    text_ += StrCat(At(trace_, seen.now_s), ": ", change,
                    "\n    why: ", seen.policy.Reason(*active), "\n", OthersOf(number_, seen));
  }

  std::string Text() const {
    if (lines_ <= kLinesMax) return text_;
    return StrCat(text_, "and ", lines_ - kLinesMax, " more decisions\n");
  }

 private:
  const Trace& trace_;
  const int number_;
  bool waits_ = false;  // and the text says so
  int lines_ = 0;
  std::string text_;
};

Result<int> NumberOf(const Trace& trace, const std::string& job) {
  std::vector<std::string> names;
  std::vector<int> of_any_namespace;
  for (size_t i = 0; i < trace.jobs.size(); ++i) {
    const std::string& name = trace.jobs[i].name;
    if (name == job) return static_cast<int>(i);
    if (name.ends_with(StrCat("/", job))) of_any_namespace.push_back(static_cast<int>(i));
    if (names.size() < kNamesMax) names.push_back(name);
  }
  if (of_any_namespace.size() == 1) return of_any_namespace.front();
  const bool more = trace.jobs.size() > kNamesMax;
  return Status(Code::kNotFound, StrCat(trace.name, " has no job ", Quote(job), "; its jobs are ",
                                        Join(names, ", "), more ? ", …" : ""));
}

}  // namespace

Result<std::string> ExplainJob(const Trace& trace,
                               const ProfileLibrary& profiles,
                               const PolicyKind& policy,
                               RunOptions options,
                               const std::string& job) {
  SWELL_ASSIGN_OR_RETURN(const int number, NumberOf(trace, job));
  Life life(trace, number);
  options.on_decision = [&life](const DecisionSeen& seen) { life.OnDecision(seen); };
  SWELL_ASSIGN_OR_RETURN(const RunOutcome run, Play(trace, profiles, policy, options));
  const JobOutcome& outcome = run.jobs[static_cast<size_t>(number)];
  const std::string held = Decimal(outcome.gpu_s / 3600, 2);
  const TraceJob& traced = trace.jobs[static_cast<size_t>(number)];
  return StrCat(traced.name, traced.tenant.empty() ? "" : StrCat(" of ", traced.tenant),
                " requests ", Gpus(static_cast<size_t>(traced.gpus)), ", submitted ",
                At(trace, traced.submitted_s), ", policy ", policy.name, "\n", life.Text(),
                At(trace, outcome.ended_s), ": ended, ", outcome.completion_s(),
                " s after its submission, of which ", outcome.started_s - outcome.submitted_s,
                " s before its start; restarts: ", outcome.restarts, ", GPU-hours: ", held, "\n");
}

}  // namespace swell::lab
