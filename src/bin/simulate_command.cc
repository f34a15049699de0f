// `swell simulate`: what the scheduler would do with a state, in a file, anywhere.
#include <cstdio>

#include "base/file.h"
#include "base/strings.h"
#include "bin/command_line.h"
#include "bin/commands.h"
#include "bin/cycle_table.h"
#include "jobs/job_members.h"
#include "jobs/job_rules.h"
#include "kube/api/meta.h"
#include "scheduling/simulate.h"

namespace swell {
namespace {

constexpr int64_t kCyclesMax = 10'000;

const cli::Command kSimulate{
    .name = "simulate",
    .summary = "Run scheduling cycles over a state in a file.",
    .usage = "[FILE]",
    .examples = {{"What would the scheduler do now?",
                  "swell snapshot > state.json && swell simulate state.json"},
                 {"Would it fit if nobody had to give way?",
                  "swell simulate state.json --actions allocate"}},
    .notes =
        "The state is a v1 List, JSON or YAML, as from kubectl get -o json or swell snapshot: "
        "nodes, pods, pod groups, projects, node pools, topologies, priority classes. Nothing "
        "is contacted and nothing is changed; the same input gives the same output."};

struct Request {
  std::string state;
  std::string output = "table";
  controllers::SimulateOptions options;
};

Status ReadActions(const std::string& text, sched::CycleOptions& options) {
  options.actions = 0;
  for (std::string_view name : Split(text, ',')) {
    auto action = sched::ActionFromName(name);
    if (!action) {
      return {Code::kBadRequest,
              StrCat("--actions: there is no action ", Quote(name),
                     "; there are allocate, shrink, consolidate, reclaim, preempt, stale-gangs "
                     "and grow")};
    }
    options.actions |= 1u << static_cast<int>(*action);
  }
  return {};
}

// The flags as they were typed, before they mean anything.
struct SimulateFlags {
  std::string now;
  std::string actions;
  int64_t cycles = 1;
  std::vector<std::string> settings;
};

void AddSimulateFlags(cli::Flags& flags, SimulateFlags& to, Request& request) {
  flags.Text("--state", &request.state, "FILE", "the state, as FILE; - reads standard input");
  flags.Text("--now", &to.now, "TIME", "virtual time, RFC 3339 (default: the real time)");
  flags.Int("--cycles", &to.cycles, "N", "cycles to run (default 1)");
  flags.Text("--actions", &to.actions, "A,B",
             "only these of allocate, shrink, consolidate, reclaim, preempt, stale-gangs, grow");
  flags.Switch("--keep-terminating", &request.options.keep_terminating,
               "terminating pods stay terminating between cycles");
  AddSettingsFlag(flags, to.settings);
  flags.Choice("-o,--output", &request.output, "FORMAT", {"json", "table"},
               "json or table (default table)");
}

Status ReadRequest(const SimulateFlags& flags, Request& request) {
  if (request.state.empty()) {
    return {Code::kBadRequest, "which state? name its file, or - for standard input"};
  }
  if (flags.cycles < 1 || flags.cycles > kCyclesMax) {
    return {Code::kBadRequest,
            StrCat("--cycles ", flags.cycles, " is not between 1 and ", kCyclesMax)};
  }
  request.options.cycles = static_cast<int>(flags.cycles);
  request.options.now = RealClock().Now();
  if (!flags.now.empty()) {
    auto time = api::ParseTime(flags.now);
    if (!time) {
      return {Code::kBadRequest, StrCat("--now ", Quote(flags.now), " is not an RFC 3339 time")};
    }
    request.options.now = *time;
  }
  if (!flags.actions.empty()) {
    SWELL_RETURN_IF_ERROR(ReadActions(flags.actions, request.options.cycle));
  }
  sched::Settings tried;  // those of the state come first
  return ReadSettings(flags.settings, tried);
}

Result<std::string> ReadAll(const std::string& path) {
  if (path != "-") return ReadFile(path, size_t{1} << 30);
  std::string text;
  char chunk[1 << 16];
  while (size_t got = std::fread(chunk, 1, sizeof chunk, stdin)) {
    text.append(chunk, got);
    if (text.size() > size_t{1} << 30) return Status(Code::kTooLarge, "the state is over 1 GiB");
  }
  return text;
}

void AddWaiting(const json::Value& cycle, CycleTable& table) {
  std::string_view group, reason;
  std::vector<std::string> pods;
  auto tell = [&] { table.AddWaiting(pods, std::string(reason)); };
  for (const json::Value& pod : json::GetArray(cycle, {"pods"})) {
    if (json::GetString(pod, {"status"}) != "Pending") continue;
    const std::string_view its = json::GetString(pod, {"podGroup"});
    const std::string_view why = json::GetString(pod, {"reason"});
    if (its.empty() || its != group || why != reason) {
      tell();
      pods.clear();
      group = its;
      reason = why;
    }
    pods.emplace_back(json::GetString(pod, {"name"}));
  }
  tell();
}

void PrintTable(const json::Value& result) {
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
    if (number > 0) std::printf("\n");
    table.Print(StrCat("Cycle ", ++number));
  }
}

}  // namespace

cli::WhatIfEngine MakeForesight() {
  cli::WhatIfEngine what_if;
  what_if.simulate = [](const cli::StateView& state, WallTime now) {
    std::vector<std::string> problems;
    controllers::StateInputs inputs = controllers::ReadStateItems(state, problems);
    controllers::SimulateOptions options;
    options.now = now;
    options.settings = inputs.settings.cycle;
    return controllers::Simulate(std::move(inputs), options);
  };
  what_if.make_gang = [](const client::Resource& resource,
                         const json::Value& job) -> Result<json::Array> {
    const controllers::JobRules rules;
    const controllers::JobKind* kind = rules.Find(resource.group, resource.plural);
    if (kind != nullptr) return controllers::MakeGang(*kind, job);
    return Status(Code::kNotAcceptable, StrCat("there is no plan for ", resource.plural));
  };
  return what_if;
}

int SimulateCommand(const std::vector<std::string>& arguments) {
  Request request;
  SimulateFlags typed;
  cli::Flags flags;
  AddSimulateFlags(flags, typed, request);
  std::vector<std::string> words;
  if (auto exit = ParseCommandLine(kSimulate, flags, arguments, &words)) return *exit;
  const size_t most = request.state.empty() ? 1 : 0;
  if (words.size() > most) {
    return Misused(kSimulate, StrCat("unexpected word ", Quote(words[most])));
  }
  if (!words.empty()) request.state = words[0];
  if (Status read = ReadRequest(typed, request); !read.ok()) {
    return Misused(kSimulate, read.message());
  }
  Result<std::string> text = ReadAll(request.state);
  if (!text.ok()) {
    std::fprintf(stderr, "swell simulate: %s\n", text.status().message().c_str());
    return 1;
  }
  std::vector<std::string> problems;
  controllers::StateInputs inputs = controllers::ReadState(*text, problems);
  for (const std::string& problem : problems) std::fprintf(stderr, "%s\n", problem.c_str());
  if (!problems.empty()) return 1;
  request.options.settings = inputs.settings.cycle;
  if (Status set = ReadSettings(typed.settings, request.options.settings); !set.ok()) {
    return Misused(kSimulate, set.message());
  }
  const json::Value result = controllers::Simulate(std::move(inputs), request.options);
  if (request.output == "json") {
    std::printf("%s\n", json::PrintPretty(result, 1).c_str());
  } else {
    PrintTable(result);
  }
  return 0;
}

}  // namespace swell
