// swell lab run: traces of jobs under one policy and another, in virtual time.
#include <time.h>

#include <algorithm>

#include "base/decimal.h"
#include "base/file.h"
#include "base/strings.h"
#include "cli/print/text_table.h"
#include "lab/fair_time.h"
#include "lab/plot.h"
#include "lab/report.h"
#include "ops/lab/lab_actions.h"
#include "ops/lab/lab_input.h"
#include "ops/lab/lab_revocations.h"

namespace swell::ops {
namespace {

constexpr std::string_view kAsItWas = "as it was";

std::string RangeText(const std::optional<lab::Interval>& range, double unit, int digits) {
  if (!range) return "-";
  return StrCat(Decimal(range->low * unit, digits), " to ", Decimal(range->high * unit, digits));
}

// Not by the clock: other work of the machine would count as part of a decision.
int64_t ProcessorTime() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

class RunAction final : public cli::Action {
 public:
  void Declare(cli::Flags& flags) override {
    input_.Declare(flags);
    flags.List("--policy", &policies_, "NAME",
               "policy to play, repeatable; the others are compared with the first "
               "(default goodput)");
    flags.Switch("--fair-times", &fair_times_,
                 "also play each job alone on its fair share, for WORST RATIO where durations are "
                 "not known");
    revocations_.Declare(flags);
    flags.Int("--seed", &seed_, "N", "seed of the bootstrap, and of revocations (default 1)");
    flags.Text("--csv", &csv_, "FILE", "write a line for each job and policy to this file");
    flags.Text("--tenant-csv", &tenant_csv_, "FILE",
               "write a line for each tenant, hour and policy to this file: GPUs asked for, "
               "share and GPUs held");
    flags.Text("--plot", &plot_, "FILE.svg",
               "plot the distribution of completion times, and the GPUs in use over time");
    flags.Choice("-o,--output", &output_, "FORMAT", {"json", "table"},
                 "output format: json or table (default table)");
  }

  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(ReadPolicies());
    SWELL_RETURN_IF_ERROR(revocations_.Check());
    SWELL_RETURN_IF_ERROR(input_.Read(session, words));
    SWELL_RETURN_IF_ERROR(input_.CheckOutput("--csv", csv_));
    SWELL_RETURN_IF_ERROR(input_.CheckOutput("--tenant-csv", tenant_csv_));
    SWELL_RETURN_IF_ERROR(input_.CheckOutput("--plot", plot_));
    SWELL_ASSIGN_OR_RETURN(const std::vector<lab::PolicyRuns> all, PlayAll());
    if (!csv_.empty()) {
      SWELL_RETURN_IF_ERROR(
          WriteForPeople(session, csv_, lab::JobsAsCsv(all, input_.TraceNames())));
    }
    if (!tenant_csv_.empty()) {
      SWELL_RETURN_IF_ERROR(
          WriteForPeople(session, tenant_csv_, lab::TenantHoursAsCsv(all, input_.TraceNames())));
    }
    if (!plot_.empty()) {
      SWELL_RETURN_IF_ERROR(WriteForPeople(
          session, plot_, lab::PlotAsSvg(all, input_.TraceNames(), input_.options().shape.gpus())));
    }
    const auto summaries = lab::Summarize(all, static_cast<uint64_t>(seed_));
    if (output_ == "json") {
      session.OutLine(json::PrintPretty(lab::ToJson(summaries)));
    } else {
      PrintTable(session, summaries);
    }
    return 0;
  }

 private:
  static Status WriteForPeople(cli::Session& session,
                               const std::string& file,
                               const std::string& text) {
    if (file != "-") return WriteThrough(file, text);
    session.Out(text);
    return {};
  }

  Status ReadPolicies() {
    if (policies_.empty()) policies_ = {"goodput"};
    for (const std::string& name : policies_) {
      auto kind = lab::FindPolicy(name);
      if (kind.ok() && std::count(kinds_.begin(), kinds_.end(), *kind) > 0) {
        return cli::Misuse(StrCat("--policy ", name, " is given twice"));
      }
      if (!kind.ok()) return cli::Misuse(StrCat("--policy: ", kind.status().message()));
      kinds_.push_back(*kind);
    }
    return {};
  }

  Result<std::vector<lab::PolicyRuns>> PlayAll() const {
    lab::RunOptions options = input_.options();
    options.revocations = revocations_.Options(static_cast<uint64_t>(seed_));
    options.clock_ns = ProcessorTime;
    std::vector<lab::PolicyRuns> all;
    if (input_.as_it_was()) {
      all.push_back({std::string(kAsItWas), false, {*input_.as_it_was()}, true});
    }
    for (const lab::PolicyKind* kind : kinds_) {
      lab::PolicyRuns& runs = all.emplace_back();
      runs.policy = kind->name;
      runs.looks_ahead = kind->looks_ahead;
      for (const lab::Trace& trace : input_.traces()) {
        SWELL_ASSIGN_OR_RETURN(lab::RunOutcome run,
                               lab::Play(trace, input_.profiles(), *kind, options));
        if (fair_times_ || trace.jobs.front().application.empty()) {
          SWELL_RETURN_IF_ERROR(
              lab::AddFairTimes(trace, input_.profiles(), *kind, input_.options(), run));
        }
        if (options.revocations) {
          SWELL_RETURN_IF_ERROR(lab::AddUndisturbed(trace, input_.profiles(), *kind, options, run));
        }
        runs.runs.push_back(std::move(run));
      }
    }
    return all;
  }

  void PrintTable(cli::Session& session, const std::vector<lab::PolicySummary>& summaries) const {
    std::vector<std::string> head{"POLICY",
                                  "AVG JCT",
                                  "95 %",
                                  "CHANGE",
                                  "95 %",
                                  "P99",
                                  "MAKESPAN",
                                  "RESTARTS/JOB",
                                  "GPU-H/JOB",
                                  "WORST RATIO",
                                  "DECISION P50/P99",
                                  "DECISIONS"};
    if (revocations_.given()) head.insert(head.end(), {"GOODPUT", "LOST GPU-H/JOB"});
    cli::TextTable table(head);
    bool ahead = false;
    for (const lab::PolicySummary& sum : summaries) {
      ahead |= sum.looks_ahead;
      std::string decide = "-";
      if (sum.decide_p50_ms && sum.decide_p99_ms) {
        decide = StrCat(Decimal(*sum.decide_p50_ms, 3), "/", Decimal(*sum.decide_p99_ms, 3), " ms");
      }
      std::vector<std::string> row{sum.policy + (sum.looks_ahead ? "*" : ""),
                                   Decimal(sum.average_s, 1) + " s",
                                   RangeText(sum.average_range, 1, 0),
                                   sum.change ? Decimal(*sum.change * 100, 1) + " %" : "-",
                                   RangeText(sum.change_range, 100, 1),
                                   Decimal(sum.p99_s / 3600, 2) + " h",
                                   Decimal(sum.makespan_s / 3600, 2) + " h",
                                   Decimal(sum.restarts, 2),
                                   Decimal(sum.gpu_hours, 2),
                                   sum.worst_ratio ? Decimal(*sum.worst_ratio, 2) : "-",
                                   decide,
                                   sum.observed ? "-" : lab::HashText(sum.hash)};
      if (revocations_.given()) {
        row.push_back(sum.revoked ? Decimal(sum.revoked->goodput * 100, 2) + " %" : "-");
        row.push_back(sum.revoked ? Decimal(sum.revoked->lost_gpu_hours, 3) : "-");
      }
      table.Add(row);
    }
    table.DropEmptyColumns();
    session.Out(table.ToString());
    for (const std::string& line : input_.Notes()) session.OutLine(line);
    if (revocations_.given()) {
      session.OutLine(revocations_.Note());
    }
    if (ahead) session.OutLine("* looks ahead: it knows how long jobs will train.");
  }

  LabInput input_;
  LabRevocations revocations_;
  std::vector<std::string> policies_;
  bool fair_times_ = false;
  int64_t seed_ = 1;
  std::string csv_;
  std::string tenant_csv_;
  std::string plot_;
  std::string output_ = "table";
  std::vector<const lab::PolicyKind*> kinds_;
};

}  // namespace

std::unique_ptr<cli::Action> MakeLabRun() { return std::make_unique<RunAction>(); }

}  // namespace swell::ops
