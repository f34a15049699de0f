// `swell replay`: recorded scheduling cycles, run again.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/record_ring.h"
#include "base/strings.h"
#include "bin/command_line.h"
#include "bin/commands.h"
#include "bin/cycle_table.h"
#include "bin/data_dir.h"
#include "cli/print/text_table.h"
#include "json/value.h"
#include "kube/api/meta.h"
#include "sched/replay.h"

namespace swell {
namespace {

const cli::Command kReplay{
    .name = "replay",
    .summary = "Run recorded scheduling cycles again and say whether they decide the same.",
    .usage = "[DIR|FILE]",
    .examples = {{"Everything that this machine's cluster has on record", "swell replay"},
                 {"What the last five cycles decided, and why", "swell replay --last 5 --verbose"},
                 {"One cycle of a controller's record, for scripts",
                  "swell replay /var/lib/swell/cycles --cycle 4711 -o json"}},
    .notes =
        "A scheduler keeps its last cycles: what it was told, and what it decided (swell up in "
        "DIR/cycles below its data directory, swell controller where --record-dir says). Nothing "
        "is contacted and nothing is changed; it may run meanwhile. The exit status is 1 when a "
        "cycle decides otherwise."};

struct ReplayFlags {
  std::string data_dir;
  std::string output = "table";
  int64_t cycle = 0;
  int64_t last = 0;
  bool verbose = false;
};

struct Told {
  sched::ReplayedCycle cycle;
  std::string error;  // the segment cannot be understood from here on
};

bool Wanted(const ReplayFlags& flags, uint64_t number) {
  return flags.cycle == 0 || number == static_cast<uint64_t>(flags.cycle);
}

struct Recorded {
  std::vector<RecordRing::Segment> segments;
  uint64_t first = 0;  // cycles that are there: from first, up to but without `end`
  uint64_t end = 0;
  bool torn = false;
};

Result<Recorded> ReadAll(const std::string& path) {
  std::vector<std::string> files{path};
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    SWELL_ASSIGN_OR_RETURN(files, RecordRing::Segments(path));
  }
  Recorded all;
  for (const std::string& file : files) {
    SWELL_ASSIGN_OR_RETURN(RecordRing::Segment segment, RecordRing::Read(file));
    // The newest may be in the middle of a write.
    all.torn |= segment.torn && &file != &files.back();
    if (segment.records.empty() || !sched::BeginsSegment(segment.records.front())) {
      if (segment.torn || !segment.records.empty()) {
        return Status(Code::kInvalid, StrCat(file, ": not a record of scheduling cycles"));
      }
      continue;
    }
    all.segments.push_back(std::move(segment));
  }
  if (all.segments.empty()) {
    return Status(Code::kNotFound, StrCat("no scheduling cycles are on record in ", path));
  }
  const uint64_t next = sched::NextCycleOf(all.segments.front().records.front()).value_or(1);
  all.first = std::max<uint64_t>(next, 2) - 1;
  all.end = sched::NextCycleOf(all.segments.back().records.back()).value_or(next);
  return all;
}

// Replays what is asked for. A segment that goes another way is left at that cycle: the rest of it
// would only tell of the consequences.
std::vector<Told> RunAgain(const Recorded& recorded, const ReplayFlags& flags) {
  uint64_t from = recorded.first;
  if (flags.cycle > 0) from = static_cast<uint64_t>(flags.cycle);
  const auto last = static_cast<uint64_t>(flags.last);
  if (last > 0 && recorded.end > last) from = std::max(from, recorded.end - last);
  std::vector<Told> told;
  for (const RecordRing::Segment& segment : recorded.segments) {
    if (sched::NextCycleOf(segment.records.back()).value_or(0) <= from) continue;
    sched::Replay replay;
    for (const std::string& record : segment.records) {
      auto cycle = replay.Next(record);
      if (!cycle.ok()) {
        told.push_back({{}, cycle.status().message()});
        break;
      }
      if (!*cycle) continue;
      const bool differs = !(*cycle)->difference.empty();
      const uint64_t number = (*cycle)->number;
      if (differs || (number >= from && Wanted(flags, number))) {
        told.push_back({std::move(**cycle), ""});
      }
      if (differs || (flags.cycle > 0 && number >= from)) break;
    }
  }
  return told;
}

json::Value DecisionJson(const sched::Decision& decision) {
  json::Array devices;
  for (int device : decision.gpu_devices) devices.push_back(device);
  json::Object out{{"type", sched::DecisionTypeName(decision.type)},
                   {"pod", decision.pod},
                   {"node", decision.node},
                   {"gpus", std::move(devices)},
                   {"rule", decision.rule},
                   {"reason", decision.Reason()}};
  if (decision.beneficiary) out["beneficiary"] = decision.beneficiary->pod;
  return out;
}

void PrintJson(const std::vector<Told>& told, bool torn, bool equal) {
  json::Array cycles;
  for (const Told& one : told) {
    if (!one.error.empty()) {
      cycles.push_back(json::Object{{"equal", false}, {"error", one.error}});
      continue;
    }
    json::Array decisions;
    for (const sched::Decision& d : one.cycle.result.decisions)
      decisions.push_back(DecisionJson(d));
    json::Array waiting;
    for (const sched::Waiting& w : one.cycle.result.waiting) {
      waiting.push_back(json::Object{{"podGroup", w.group},
                                     {"pods", json::Array(w.pods.begin(), w.pods.end())},
                                     {"reason", w.reason}});
    }
    json::Object cycle{{"cycle", static_cast<int64_t>(one.cycle.number)},
                       {"time", api::FormatTime(one.cycle.now)},
                       {"decisions", std::move(decisions)},
                       {"waiting", std::move(waiting)},
                       {"equal", one.cycle.difference.empty()}};
    if (!one.cycle.difference.empty()) cycle["difference"] = one.cycle.difference;
    cycles.push_back(std::move(cycle));
  }
  const json::Value out =
      json::Object{{"equal", equal}, {"torn", torn}, {"cycles", std::move(cycles)}};
  std::printf("%s\n", json::PrintPretty(out, 1).c_str());
}

void PrintVerbose(const std::vector<Told>& told) {
  for (const Told& one : told) {
    if (!one.error.empty()) continue;
    CycleTable table;
    for (const sched::Decision& d : one.cycle.result.decisions) {
      table.AddDecision(std::string(sched::DecisionTypeName(d.type)), d.pod, d.node, d.rule,
                        d.Reason());
    }
    for (const sched::Waiting& w : one.cycle.result.waiting) table.AddWaiting(w.pods, w.reason);
    table.Print(StrCat("Cycle ", one.cycle.number, " at ", api::FormatTime(one.cycle.now)));
    std::printf("\n");
  }
}

void PrintTable(const std::vector<Told>& told) {
  cli::TextTable table({"CYCLE", "TIME", "DECISIONS", "WAITING", "REPLAY"});
  for (const Told& one : told) {
    if (!one.error.empty()) continue;
    table.Add({std::to_string(one.cycle.number), api::FormatTime(one.cycle.now),
               std::to_string(one.cycle.result.decisions.size()),
               std::to_string(one.cycle.result.waiting.size()),
               one.cycle.difference.empty() ? "equal" : "differs"});
  }
  std::printf("%s", table.ToString().c_str());
}

void PrintSummary(const std::vector<Told>& told, bool torn) {
  size_t equal = 0;
  for (const Told& one : told) {
    if (!one.error.empty()) {
      std::printf("A segment ends early: %s\n", one.error.c_str());
    } else if (one.cycle.difference.empty()) {
      ++equal;
    } else {
      std::printf("Cycle %llu differs: %s\n", static_cast<unsigned long long>(one.cycle.number),
                  one.cycle.difference.c_str());
    }
  }
  if (torn) std::printf("The record is torn where a process was killed; what was whole is used.\n");
  if (equal == told.size()) {
    std::printf("%zu %s replayed: %s decide%s what was decided then, bit for bit.\n", equal,
                equal == 1 ? "cycle" : "cycles", equal == 1 ? "it" : "they", equal == 1 ? "s" : "");
  }
}

}  // namespace

int ReplayCommand(const std::vector<std::string>& arguments) {
  ReplayFlags flags;
  cli::Flags declared;
  AddDataDir(declared, flags.data_dir);
  declared.Int("--cycle", &flags.cycle, "N", "only this cycle");
  declared.Int("--last", &flags.last, "N", "only the last N cycles");
  declared.Switch("-v,--verbose", &flags.verbose, "tell every decision and who waits");
  declared.Choice("-o,--output", &flags.output, "FORMAT", {"json", "table"},
                  "json or table (default table)");
  std::vector<std::string> words;
  if (auto exit = ParseCommandLine(kReplay, declared, arguments, &words)) return *exit;
  if (words.size() > 1) return Misused(kReplay, StrCat("unexpected word ", Quote(words[1])));
  for (auto [name, value] : {std::pair("--cycle", flags.cycle), {"--last", flags.last}}) {
    if (value < 0 || (value == 0 && declared.Seen(std::string_view(name).substr(2)))) {
      return Misused(kReplay, StrCat(name, " ", value, " is not a positive number"));
    }
  }
  const std::string path = words.empty() ? ChooseDataDir(flags.data_dir).CyclesDir() : words[0];
  Result<Recorded> recorded = ReadAll(path);
  if (!recorded.ok()) return FailCommand(recorded.status());
  const std::vector<Told> told = RunAgain(*recorded, flags);
  if (told.empty()) {
    return FailCommand(Status(Code::kNotFound,
                              StrCat("cycle ", flags.cycle, " is not on record in ", path,
                                     "; there are ", recorded->first, " to ", recorded->end - 1)));
  }
  const bool equal = std::all_of(told.begin(), told.end(), [](const Told& one) {
    return one.error.empty() && one.cycle.difference.empty();
  });
  if (flags.output == "json") {
    PrintJson(told, recorded->torn, equal);
  } else {
    flags.verbose ? PrintVerbose(told) : PrintTable(told);
    PrintSummary(told, recorded->torn);
  }
  return equal ? 0 : 1;
}

}  // namespace swell
