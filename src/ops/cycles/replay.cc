// swell replay: recorded scheduling cycles, run again.
#include "sched/replay.h"

#include <algorithm>
#include <filesystem>

#include "base/record_ring.h"
#include "base/strings.h"
#include "cli/print/text_table.h"
#include "cli/session.h"
#include "json/value.h"
#include "kube/api/meta/meta.h"
#include "ops/commands.h"
#include "ops/cycles/cycle_table.h"
#include "ops/data_dir.h"
#include "ops/flags.h"

namespace swell::ops {
namespace {

struct ReplayFlags {
  std::string data_dir;
  std::string output = "table";
  int64_t cycle = 0;
  int64_t last = 0;
  bool verbose = false;
};

struct Replayed {
  sched::ReplayedCycle cycle;
  std::string error;  // the segment cannot be read from here on
};

bool Wanted(const ReplayFlags& flags, uint64_t number) {
  return flags.cycle == 0 || number == static_cast<uint64_t>(flags.cycle);
}

struct Recorded {
  std::vector<RecordRing::Segment> segments;
  uint64_t first = 0;  // recorded cycles: first to end, without end
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

// Replays the selected cycles. A segment ends at the first cycle that differs: later cycles would
// differ as a consequence.
std::vector<Replayed> RunAgain(const Recorded& recorded, const ReplayFlags& flags) {
  uint64_t from = recorded.first;
  if (flags.cycle > 0) from = static_cast<uint64_t>(flags.cycle);
  const auto last = static_cast<uint64_t>(flags.last);
  if (last > 0 && recorded.end > last) from = std::max(from, recorded.end - last);
  std::vector<Replayed> replayed;
  for (const RecordRing::Segment& segment : recorded.segments) {
    if (sched::NextCycleOf(segment.records.back()).value_or(0) <= from) continue;
    sched::Replay replay;
    for (const std::string& record : segment.records) {
      auto cycle = replay.Next(record);
      if (!cycle.ok()) {
        replayed.push_back({{}, cycle.status().message()});
        break;
      }
      if (!*cycle) continue;
      const bool differs = !(*cycle)->difference.empty();
      const uint64_t number = (*cycle)->number;
      if (differs || (number >= from && Wanted(flags, number))) {
        replayed.push_back({std::move(**cycle), ""});
      }
      if (differs || (flags.cycle > 0 && number >= from)) break;
    }
  }
  return replayed;
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

bool AllEqual(const std::vector<Replayed>& replayed) {
  return std::all_of(replayed.begin(), replayed.end(), [](const Replayed& one) {
    return one.error.empty() && one.cycle.difference.empty();
  });
}

std::string JsonOf(const std::vector<Replayed>& replayed, bool torn) {
  json::Array cycles;
  for (const Replayed& one : replayed) {
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
      json::Object{{"equal", AllEqual(replayed)}, {"torn", torn}, {"cycles", std::move(cycles)}};
  return json::PrintPretty(out, 1) + "\n";
}

std::string VerboseText(const std::vector<Replayed>& replayed) {
  std::string out;
  for (const Replayed& one : replayed) {
    if (!one.error.empty()) continue;
    CycleTable table;
    for (const sched::Decision& d : one.cycle.result.decisions) {
      table.AddDecision(std::string(sched::DecisionTypeName(d.type)), d.pod, d.node, d.rule,
                        d.Reason());
    }
    for (const sched::Waiting& w : one.cycle.result.waiting) table.AddWaiting(w.pods, w.reason);
    out +=
        table.ToString(StrCat("Cycle ", one.cycle.number, " at ", api::FormatTime(one.cycle.now)));
    out += "\n";
  }
  return out;
}

std::string TableOf(const std::vector<Replayed>& replayed) {
  cli::TextTable table({"CYCLE", "TIME", "DECISIONS", "WAITING", "REPLAY"});
  for (const Replayed& one : replayed) {
    if (!one.error.empty()) continue;
    table.Add({std::to_string(one.cycle.number), api::FormatTime(one.cycle.now),
               std::to_string(one.cycle.result.decisions.size()),
               std::to_string(one.cycle.result.waiting.size()),
               one.cycle.difference.empty() ? "equal" : "differs"});
  }
  return table.ToString();
}

std::string Summary(const std::vector<Replayed>& replayed, bool torn) {
  std::string out;
  size_t equal = 0;
  for (const Replayed& one : replayed) {
    if (!one.error.empty()) {
      out += StrCat("A segment ends early: ", one.error, "\n");
    } else if (one.cycle.difference.empty()) {
      ++equal;
    } else {
      out += StrCat("Cycle ", one.cycle.number, " differs: ", one.cycle.difference, "\n");
    }
  }
  if (torn)
    out += "The record is incomplete where a process was killed; complete cycles are used.\n";
  if (equal == replayed.size()) {
    out += StrCat(equal, equal == 1 ? " cycle" : " cycles",
                  " replayed: the decisions are the same, bit for bit.\n");
  }
  return out;
}

class ReplayAction final : public cli::Action {
 public:
  void Declare(cli::Flags& flags) override {
    AddDataDir(flags, flags_.data_dir);
    flags.Int("--cycle", &flags_.cycle, "N", "only this cycle");
    flags.Int("--last", &flags_.last, "N", "only the last N cycles");
    flags.Switch("-v,--verbose", &flags_.verbose,
                 "print every decision and every waiting pod group");
    flags.Choice("-o,--output", &flags_.output, "FORMAT", {"json", "table"},
                 "output format: json or table (default table)");
    declared_ = &flags;
  }

  Result<int> Run(cli::Session& session, std::vector<std::string> words) override {
    SWELL_RETURN_IF_ERROR(CheckWords(words, 1));
    for (auto [name, value] : {std::pair("--cycle", flags_.cycle), {"--last", flags_.last}}) {
      if (value < 0 || (value == 0 && declared_->Seen(std::string_view(name).substr(2)))) {
        return cli::Misuse(StrCat(name, " ", value, ": expected a positive number"));
      }
    }
    const std::string path = words.empty() ? ChooseDataDir(flags_.data_dir).CyclesDir() : words[0];
    SWELL_ASSIGN_OR_RETURN(const Recorded recorded, ReadAll(path));
    const std::vector<Replayed> replayed = RunAgain(recorded, flags_);
    if (replayed.empty()) {
      return Status(Code::kNotFound,
                    StrCat("cycle ", flags_.cycle, " is not on record in ", path, "; recorded are ",
                           recorded.first, " to ", recorded.end - 1));
    }
    if (flags_.output == "json") {
      session.Out(JsonOf(replayed, recorded.torn));
    } else {
      session.Out(flags_.verbose ? VerboseText(replayed) : TableOf(replayed));
      session.Out(Summary(replayed, recorded.torn));
    }
    return AllEqual(replayed) ? 0 : 1;
  }

 private:
  ReplayFlags flags_;
  const cli::Flags* declared_ = nullptr;
};

}  // namespace

cli::Command ReplayCommand() {
  return {
      .name = "replay",
      .group = "Scheduling",
      .summary = "Run recorded scheduling cycles again and compare the decisions.",
      .usage = "[DIR|FILE]",
      .examples = {{"All recorded cycles of this machine's cluster", "swell replay"},
                   {"The decisions of the last five cycles, with reasons",
                    "swell replay --last 5 --verbose"},
                   {"One cycle of a controller's record, as JSON",
                    "swell replay /var/lib/swell/cycles --cycle 4711 -o json"}},
      .notes =
          "The scheduler records the input and the decisions of its last cycles: swell up in "
          "cycles/ of its data directory, swell controller in --record-dir. Nothing is contacted "
          "or changed; the scheduler may run meanwhile. The exit status is 1 if a decision "
          "differs.",
      .standalone = true,
      .make = cli::Makes<ReplayAction>()};
}

}  // namespace swell::ops
