// swell lab run: traces of jobs under one policy and another, in virtual time.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/strings.h"
#include "cli/print/text_table.h"
#include "cli/session.h"
#include "lab/report.h"
#include "ops/commands.h"
#include "sched/state/amount_text.h"

namespace swell {
namespace {

constexpr int64_t kNodesMax = 100'000;
constexpr int64_t kGpusPerNodeMax = 1'000;
constexpr size_t kTracesMax = 1'000;

std::string Fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

// "16x4": nodes, GPUs on each.
Result<lab::ClusterShape> ReadShape(const std::string& text) {
  const std::vector<std::string_view> parts = Split(text, 'x');
  std::optional<int64_t> nodes, gpus;
  if (parts.size() == 2) {
    nodes = ParseInt(parts[0]);
    gpus = ParseInt(parts[1]);
  }
  if (!nodes || !gpus || *nodes < 1 || *nodes > kNodesMax || *gpus < 1 || *gpus > kGpusPerNodeMax) {
    return cli::Misuse(StrCat("--cluster ", Quote(text),
                              ": NODESxGPUS expected, 16x4 for 16 nodes with 4 GPUs each; at most ",
                              kNodesMax, "x", kGpusPerNodeMax));
  }
  return lab::ClusterShape{static_cast<int>(*nodes), static_cast<int>(*gpus)};
}

std::string RangeText(const std::optional<lab::Interval>& range, double unit, int digits) {
  if (!range) return "-";
  return StrCat(Fixed(range->low * unit, digits), " to ", Fixed(range->high * unit, digits));
}

std::string PolicyList() {
  std::string list;
  for (const lab::PolicyKind& kind : lab::Policies()) {
    list += StrCat("  ", kind.name, std::string(10 - std::min<size_t>(kind.name.size(), 9), ' '),
                   kind.summary, kind.looks_ahead ? "; looks ahead" : "", "\n");
  }
  return list;
}

class RunAction final : public cli::Action {
 public:
  void Declare(cli::Flags& flags) override {
    flags.Text("--cluster", &cluster_, "NODESxGPUS",
               "nodes, and GPUs on each of them (default 16x4)");
    flags.List("--policy", &policies_, "NAME",
               "policy to play, repeatable; the first one is what others are compared with "
               "(default goodput)");
    flags.Text("--profiles", &profiles_, "DIR",
               "measurements of the traces' applications; for traces that name applications");
    flags.Text("--gpu-type", &gpu_type_, "TYPE",
               "GPU type of the profiles: placements-TYPE.csv (default aws)");
    flags.Int("--resize-cost", &resize_s_, "SECONDS",
              "what a start, resize or move takes without progress (default 30)");
    flags.Int("--round", &round_s_, "SECONDS",
              "let every policy decide in rounds of this length (default: its own rhythm)");
    flags.Int("--seed", &seed_, "N", "seed of the bootstrap (default 1)");
    flags.Text("--csv", &csv_, "FILE", "write a line for each job and policy");
    flags.Choice("-o,--output", &output_, "FORMAT", {"json", "table"},
                 "output format: json or table (default table)");
  }

  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(Check(words));
    SWELL_ASSIGN_OR_RETURN(std::vector<lab::Trace> traces, ReadTraces(words));
    SWELL_ASSIGN_OR_RETURN(const lab::ProfileLibrary library, ReadProfiles(traces));
    std::vector<lab::PolicyRuns> all;
    for (const lab::PolicyKind* kind : kinds_) {
      lab::PolicyRuns& runs = all.emplace_back();
      runs.policy = kind->name;
      runs.looks_ahead = kind->looks_ahead;
      for (const lab::Trace& trace : traces) {
        SWELL_ASSIGN_OR_RETURN(lab::RunOutcome run, lab::Play(trace, library, *kind, options_));
        runs.runs.push_back(std::move(run));
      }
    }
    if (!csv_.empty()) {
      std::vector<std::string> names;
      for (size_t i = 0; i < traces.size(); ++i) {
        // Files of one name are told apart by their paths.
        const bool twice = std::count_if(traces.begin(), traces.end(), [&](const auto& other) {
                             return other.name == traces[i].name;
                           }) > 1;
        names.push_back(twice ? words[i] : traces[i].name);
      }
      SWELL_RETURN_IF_ERROR(WriteForPeople(session, lab::JobsAsCsv(all, names)));
    }
    const auto summaries = lab::Summarize(all, static_cast<uint64_t>(seed_));
    if (output_ == "json") {
      session.OutLine(json::PrintPretty(lab::ToJson(summaries)));
    } else {
      PrintTable(session, summaries, traces);
    }
    return 0;
  }

 private:
  // Into what the path leads to. A trace that is read is not written.
  Status WriteForPeople(cli::Session& session, const std::string& text) const {
    if (csv_ == "-") {
      session.Out(text);
      return {};
    }
    return WriteThrough(csv_, text);
  }
  Status CheckCsv(const std::vector<std::string>& traces) const {
    for (const std::string& trace : traces) {
      std::error_code none;
      if (csv_.empty() || !std::filesystem::equivalent(csv_, trace, none)) continue;
      return cli::Misuse(StrCat("--csv ", csv_, ": this is the trace; another file expected"));
    }
    return {};
  }

  Status Check(const std::vector<std::string>& words) {
    if (words.empty()) return cli::Misuse("TRACE... expected");
    if (words.size() > kTracesMax) return cli::Misuse(StrCat("more than ", kTracesMax, " traces"));
    SWELL_RETURN_IF_ERROR(CheckCsv(words));
    SWELL_ASSIGN_OR_RETURN(options_.shape, ReadShape(cluster_));
    if (policies_.empty()) policies_ = {"goodput"};
    for (const std::string& name : policies_) {
      auto kind = lab::FindPolicy(name);
      if (kind.ok() && std::count(kinds_.begin(), kinds_.end(), *kind) > 0) {
        return cli::Misuse(StrCat("--policy ", name, " is given twice"));
      }
      if (!kind.ok()) return cli::Misuse(StrCat("--policy: ", kind.status().message()));
      kinds_.push_back(*kind);
    }
    if (resize_s_ < 0 || resize_s_ > 86'400) {
      return cli::Misuse(StrCat("--resize-cost ", resize_s_, ": 0 to 86400 expected"));
    }
    if (round_s_ < 0 || round_s_ > 86'400) {
      return cli::Misuse(StrCat("--round ", round_s_, ": 1 to 86400 expected"));
    }
    options_.resize_s = resize_s_;
    options_.round_s = round_s_;
    options_.clock_ns = [] {
      return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
    };
    return {};
  }

  static Result<std::vector<lab::Trace>> ReadTraces(const std::vector<std::string>& words) {
    std::vector<lab::Trace> traces;
    for (const std::string& path : words) {
      SWELL_ASSIGN_OR_RETURN(lab::Trace trace, lab::ReadTrace(path));
      traces.push_back(std::move(trace));
    }
    return traces;
  }

  Result<lab::ProfileLibrary> ReadProfiles(const std::vector<lab::Trace>& traces) const {
    std::set<std::string> named;
    for (const lab::Trace& trace : traces) {
      for (const lab::TraceJob& job : trace.jobs) named.insert(job.application);
    }
    if (!profiles_.empty()) return lab::ProfileLibrary::Load(profiles_, gpu_type_, &named);
    for (const lab::Trace& trace : traces) {
      for (const lab::TraceJob& job : trace.jobs) {
        if (job.application.empty()) continue;
        return cli::Misuse(StrCat(trace.name, " names applications (", Quote(job.application),
                                  "): --profiles DIR with DIR/", job.application, "/placements-",
                                  gpu_type_, ".csv expected"));
      }
    }
    return lab::ProfileLibrary();
  }

  void PrintTable(cli::Session& session,
                  const std::vector<lab::PolicySummary>& summaries,
                  const std::vector<lab::Trace>& read) const {
    const size_t traces = read.size();
    int64_t not_played = 0;
    for (const lab::Trace& trace : read) not_played += trace.left_out;
    const std::string left_out = not_played == 0
                                     ? ""
                                     : StrCat(" ", sched::Plural(not_played, "more job"),
                                              " used no GPU, never began or still ran: left out.");

    cli::TextTable table({"POLICY", "AVG JCT", "95 %", "CHANGE", "95 %", "P99", "MAKESPAN",
                          "RESTARTS/JOB", "GPU-H/JOB", "DECISION P50/P99", "DECISIONS"});
    bool ahead = false;
    for (const lab::PolicySummary& sum : summaries) {
      ahead |= sum.looks_ahead;
      std::string decide = "-";
      if (sum.decide_p50_ms && sum.decide_p99_ms) {
        decide = StrCat(Fixed(*sum.decide_p50_ms, 3), "/", Fixed(*sum.decide_p99_ms, 3), " ms");
      }
      table.Add({sum.policy + (sum.looks_ahead ? "*" : ""), Fixed(sum.average_s, 1) + " s",
                 RangeText(sum.average_range, 1, 0),
                 sum.change ? Fixed(*sum.change * 100, 1) + " %" : "-",
                 RangeText(sum.change_range, 100, 1), Fixed(sum.p99_s / 3600, 2) + " h",
                 Fixed(sum.makespan_s / 3600, 2) + " h", Fixed(sum.restarts, 2),
                 Fixed(sum.gpu_hours, 2), decide, lab::HashText(sum.hash)});
    }
    session.Out(table.ToString());
    session.OutLine(StrCat(sched::Plural(summaries.front().jobs, "job"), " of ",
                           sched::Plural(traces, "trace"), " on ", options_.shape.nodes, "x",
                           options_.shape.gpus_per_node, " GPUs, ", resize_s_, " s a resize.",
                           left_out));
    if (ahead) session.OutLine("* looks ahead: it knows how long jobs will train.");
  }

  std::string cluster_ = "16x4";
  std::vector<std::string> policies_;
  std::string profiles_;
  std::string gpu_type_ = "aws";
  int64_t resize_s_ = 30;
  int64_t round_s_ = 0;
  int64_t seed_ = 1;
  std::string csv_;
  std::string output_ = "table";
  std::vector<const lab::PolicyKind*> kinds_;
  lab::RunOptions options_;
};

}  // namespace

cli::Command LabCommand() {
  cli::Command lab{.name = "lab",
                   .group = "Cluster",
                   .summary = "Compare scheduling policies on traces of jobs.",
                   .standalone = true};
  lab.children = {
      {.name = "run",
       .summary = "Play traces of jobs in virtual time, under one policy or several.",
       .usage = "TRACE...",
       .examples = {{"Two policies over two traces",
                     "swell lab run w1.csv w2.csv --profiles profiles --policy tiresias --policy "
                     "goodput"},
                    {"A month of a Slurm cluster under Swell's scheduler",
                     "swell lab run sacct.txt --cluster 32x8 --policy fifo --policy fair"}},
       .notes =
           StrCat("Policies:\n", PolicyList(),
                  "\nTraces are workloads of Pollux and Sia, Philly as Pollux' authors reduced "
                  "it, and what sacct -P prints. See docs/lab.md."),
       .standalone = true,
       .make = cli::Makes<RunAction>()}};
  return lab;
}

}  // namespace swell
