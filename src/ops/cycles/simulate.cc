// swell simulate: scheduling cycles over a state in a file.
#include "scheduling/simulate.h"

#include "base/file.h"
#include "base/strings.h"
#include "cli/session.h"
#include "jobs/job_rules.h"
#include "jobs/pass/job_members.h"
#include "kube/api/meta/meta.h"
#include "ops/commands.h"
#include "ops/cycles/cycle_table.h"
#include "ops/flags.h"
#include "sched/actions/registry.h"

namespace swell::ops {
namespace {

constexpr int64_t kCyclesMax = 10'000;
constexpr size_t kStateBytesMax = size_t{1} << 30;

struct Request {
  std::string state;
  std::string output = "table";
  scheduling::SimulateOptions options;
};

Status ReadActions(const std::string& text, sched::CycleOptions& options) {
  options.actions = 0;
  for (std::string_view name : Split(text, ',')) {
    const uint32_t bit = sched::ActionBit(name);
    if (bit == 0) {
      std::vector<std::string> known = sched::ActionNames();
      const std::string last = known.back();
      known.pop_back();
      return cli::Misuse(StrCat("--actions: unknown action ", Quote(name), "; the actions are ",
                                Join(known, ", "), " and ", last));
    }
    options.actions |= bit;
  }
  return {};
}

// The flags as typed.
struct SimulateFlags {
  std::string now;
  std::string actions;
  int64_t cycles = 1;
  std::vector<std::string> settings;
};

void AddSimulateFlags(cli::Flags& flags, SimulateFlags& to, Request& request) {
  flags.Text("--state", &request.state, "FILE", "file with the state; -: standard input");
  flags.Text("--now", &to.now, "TIME", "time of the first cycle, RFC 3339 (default: now)");
  flags.Int("--cycles", &to.cycles, "N", "number of cycles to run (default 1)");
  flags.Text("--actions", &to.actions, "A,B",
             StrCat("actions to run (default all): ", Join(sched::ActionNames(), ", ")));
  flags.Switch("--keep-terminating", &request.options.keep_terminating,
               "do not remove terminating pods between cycles");
  AddSettingsFlag(flags, to.settings);
  flags.Choice("-o,--output", &request.output, "FORMAT", {"json", "table"},
               "output format: json or table (default table)");
}

Status ReadRequest(const SimulateFlags& flags, Request& request) {
  if (request.state.empty()) {
    return cli::Misuse("a FILE with the state is missing; - reads standard input");
  }
  if (flags.cycles < 1 || flags.cycles > kCyclesMax) {
    return cli::Misuse(StrCat("--cycles ", flags.cycles, ": expected 1 to ", kCyclesMax));
  }
  request.options.cycles = static_cast<int>(flags.cycles);
  request.options.now = RealClock().Now();
  if (!flags.now.empty()) {
    auto time = api::ParseTime(flags.now);
    if (!time) {
      return cli::Misuse(StrCat("--now ", Quote(flags.now), ": expected an RFC 3339 time"));
    }
    request.options.now = *time;
  }
  if (!flags.actions.empty()) {
    SWELL_RETURN_IF_ERROR(ReadActions(flags.actions, request.options.cycle));
  }
  sched::Settings tried;  // checked only; those in the state are read first
  return ReadSettings(flags.settings, tried);
}

void AddWaiting(const json::Value& cycle, CycleTable& table) {
  std::string_view group, reason;
  std::vector<std::string> pods;
  auto add = [&] { table.AddWaiting(pods, std::string(reason)); };
  for (const json::Value& pod : json::GetArray(cycle, {"pods"})) {
    if (json::GetString(pod, {"status"}) != "Pending") continue;
    const std::string_view its = json::GetString(pod, {"podGroup"});
    const std::string_view why = json::GetString(pod, {"reason"});
    if (its.empty() || its != group || why != reason) {
      add();
      pods.clear();
      group = its;
      reason = why;
    }
    pods.emplace_back(json::GetString(pod, {"name"}));
  }
  add();
}

std::string TableOf(const json::Value& result) {
  std::string out;
  int number = 0;
  for (const json::Value& cycle : json::GetArray(result, {"cycles"})) {
    CycleTable table;
    for (const json::Value& decision : json::GetArray(cycle, {"decisions"})) {
      table.AddDecision(std::string(json::GetString(decision, {"type"})),
                        std::string(json::GetString(decision, {"pod"})),
                        std::string(json::GetString(decision, {"node"})),
                        std::string(json::GetString(decision, {"rule"})),
                        std::string(json::GetString(decision, {"reason"})));
    }
    AddWaiting(cycle, table);
    if (number > 0) out += "\n";
    out += table.ToString(StrCat("Cycle ", ++number));
  }
  return out;
}

class SimulateAction final : public cli::Action {
 public:
  void Declare(cli::Flags& flags) override { AddSimulateFlags(flags, flags_, request_); }

  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(CheckWords(words, request_.state.empty() ? 1 : 0));
    if (!words.empty()) request_.state = words[0];
    SWELL_RETURN_IF_ERROR(ReadRequest(flags_, request_));
    SWELL_ASSIGN_OR_RETURN(const std::string text, request_.state == "-"
                                                       ? session.env().read_stdin()
                                                       : ReadFile(request_.state, kStateBytesMax));
    std::vector<std::string> problems;
    scheduling::StateInputs inputs = scheduling::ReadState(text, problems);
    for (const std::string& problem : problems) {
      session.ErrLine(StrCat("swell: ", request_.state, ": ", problem));
    }
    if (!problems.empty()) return 1;
    request_.options.settings = inputs.settings.cycle;
    SWELL_RETURN_IF_ERROR(ReadSettings(flags_.settings, request_.options.settings));
    const json::Value result = scheduling::Simulate(std::move(inputs), request_.options);
    session.Out(request_.output == "json" ? json::PrintPretty(result, 1) + "\n" : TableOf(result));
    return 0;
  }

 private:
  Request request_;
  SimulateFlags flags_;
};

}  // namespace

cli::WhatIfEngine MakeWhatIfEngine() {
  cli::WhatIfEngine what_if;
  what_if.simulate_cycles = [](const cli::StateView& state, WallTime now, int cycles) {
    std::vector<std::string> problems;
    scheduling::StateInputs inputs = scheduling::ReadStateItems(state, problems);
    scheduling::SimulateOptions options;
    options.now = now;
    options.cycles = cycles;
    options.settings = inputs.settings.cycle;
    return scheduling::Simulate(std::move(inputs), options);
  };
  what_if.simulate = [all = what_if.simulate_cycles](const cli::StateView& state, WallTime now) {
    return all(state, now, 1);
  };
  what_if.make_gang = [](const client::Resource& resource,
                         const json::Value& job) -> Result<json::Array> {
    const jobs::JobRules rules;
    const jobs::JobKind* kind = rules.Find(resource.group, resource.plural);
    if (kind != nullptr) return jobs::MakeGang(*kind, job);
    return Status(Code::kNotAcceptable, StrCat("there is no plan for ", resource.plural));
  };
  what_if.meant_image = MeantImage;
  return what_if;
}

cli::Command SimulateCommand() {
  return {
      .name = "simulate",
      .group = "Scheduling",
      .summary = "Run scheduling cycles over a state in a file.",
      .usage = "[FILE]",
      .examples = {{"What the scheduler would do now",
                    "swell snapshot > state.json && swell simulate state.json"},
                   {"Without taking anything from running jobs",
                    "swell simulate state.json --actions allocate"}},
      .notes =
          "The state is a List in JSON or YAML, as printed by kubectl get -o json or swell "
          "snapshot: "
          "nodes, pods, pod groups, projects, node pools, topologies, priority classes. No cluster "
          "is contacted. The same input gives the same output.",
      .standalone = true,
      .make = cli::Makes<SimulateAction>()};
}

}  // namespace swell::ops
