#include "kube/api/objects/progress.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::api {
namespace {

constexpr size_t kTextMax = 64 << 10;
constexpr size_t kTopMax = 200;
// Some 30 years: times of the clock end with the year 2262.
constexpr int64_t kRemainingMaxSeconds = 1'000'000'000;

double GetNumber(const json::Value& root, std::string_view field) {
  const json::Value* value = json::Find(root, {field});
  if (value == nullptr || !value->is_number()) return 0;
  const double number = value->to_number<double>();
  return std::isfinite(number) ? number : 0;
}

// Numbers of a record may be anything; more than this none of them means.
int64_t GetCount(const json::Value& root, std::string_view field) {
  constexpr int64_t kCountMax = int64_t{1} << 53;
  return std::clamp<int64_t>(json::GetInt(root, {field}), 0, kCountMax);
}

OwnPart ReadOwn(const json::Value& one) {
  const json::Value* found = json::Find(one, {"own"});
  if (found == nullptr || !found->is_object()) return {};
  return {.windows = GetCount(*found, "windows"),
          .own_ms = std::max(0.0, GetNumber(*found, "ms")),
          .step_ms = std::max(0.0, GetNumber(*found, "stepMs")),
          .elements = std::max(0.0, GetNumber(*found, "elements"))};
}

json::Value OwnToJson(const OwnPart& own) {
  json::Object out{{"windows", own.windows}, {"ms", own.own_ms}, {"stepMs", own.step_ms}};
  if (own.elements > 0) out["elements"] = own.elements;
  return out;
}

RankProgress ReadRank(const json::Value& one) {
  RankProgress rank;
  rank.file = GetCount(one, "file");
  rank.rank = GetCount(one, "rank");
  rank.world = GetCount(one, "world");
  rank.phase = json::GetString(one, {"phase"});
  rank.step = GetCount(one, "step");
  rank.total = GetCount(one, "totalSteps");
  rank.epoch = GetCount(one, "epoch");
  rank.epochs = GetCount(one, "totalEpochs");
  rank.pid = GetCount(one, "pid");
  rank.repeated = GetCount(one, "repeatedSteps");
  rank.steps_per_second = std::max(0.0, GetNumber(one, "stepsPerSecond"));
  rank.own = ReadOwn(one);
  rank.changed = ParseTime(json::GetString(one, {"changed"})).value_or(WallTime());
  rank.stalled = json::GetBool(one, {"stalled"});
  rank.deadline_seconds = GetCount(one, "deadlineSeconds");
  rank.stack = json::GetString(one, {"stack"});
  return rank;
}

}  // namespace

std::vector<std::string> RankProgress::Calls() const {
  std::string_view text = stack;
  // The thread that got the signal is the main one, which trains.
  if (const size_t main = text.find("Current thread"); main != std::string_view::npos) {
    text = text.substr(main);
    text = text.substr(0, text.find("\n\n"));
  }
  std::vector<std::string> calls;
  for (std::string_view line : Split(text, '\n')) {
    const size_t file = line.find("File \"");
    if (file != std::string_view::npos) calls.emplace_back(line.substr(file, kTopMax));
  }
  std::reverse(calls.begin(), calls.end());
  return calls;
}

std::string RankProgress::Top() const {
  if (std::vector<std::string> calls = Calls(); !calls.empty()) return std::move(calls.back());
  const std::string_view first = std::string_view(stack).substr(0, stack.find('\n'));
  return std::string(first.substr(0, kTopMax));
}

json::Value RanksToJson(const std::vector<RankProgress>& ranks) {
  json::Array list;
  for (const RankProgress& rank : ranks) {
    json::Object one{{"rank", rank.rank},
                     {"file", rank.file},
                     {"world", rank.world},
                     {"phase", rank.phase},
                     {"step", rank.step},
                     {"pid", rank.pid},
                     {"changed", FormatTime(rank.changed)},
                     {"deadlineSeconds", rank.deadline_seconds}};
    if (rank.total > 0) one["totalSteps"] = rank.total;
    if (rank.epochs > 0) {
      one["epoch"] = rank.epoch;
      one["totalEpochs"] = rank.epochs;
    }
    if (rank.repeated > 0) one["repeatedSteps"] = rank.repeated;
    if (rank.steps_per_second > 0) one["stepsPerSecond"] = rank.steps_per_second;
    if (rank.own.windows > 0) one["own"] = OwnToJson(rank.own);
    if (rank.stalled) one["stalled"] = true;
    if (!rank.stack.empty()) one["stack"] = rank.stack;
    list.push_back(std::move(one));
  }
  return json::Object{{"ranks", std::move(list)}};
}

std::vector<RankProgress> RanksOf(const json::Value& pod) {
  const std::string_view text = Annotation(pod, keys::kProgress);
  if (text.empty()) return {};
  const auto document = json::Parse(text, {.depth = 8, .bytes = kTextMax});
  if (!document.ok()) return {};
  std::vector<RankProgress> ranks;
  for (const json::Value& one : json::GetArray(*document, {"ranks"})) {
    if (ranks.size() == kRanksPerPodMax) break;
    ranks.push_back(ReadRank(one));
  }
  return ranks;
}

bool UsesSdk(const json::Value& pod) {
  const std::vector<RankProgress> ranks = RanksOf(pod);
  return std::any_of(ranks.begin(), ranks.end(),
                     [](const RankProgress& rank) { return rank.pid > 0; });
}

std::optional<FailedSave> FailedSaveOf(const json::Value& pod) {
  const std::string_view text = Annotation(pod, keys::kSaveError);
  if (text.empty()) return std::nullopt;
  const auto document = json::Parse(text, {.depth = 8, .bytes = kTextMax});
  if (!document.ok() || !document->is_object()) return std::nullopt;
  return FailedSave{GetCount(*document, "step"),
                    std::string(json::GetString(*document, {"reason"}, "no reason given"))};
}

JobProgress JobProgress::Of(const RankProgress& lead) {
  JobProgress progress{.phase = lead.phase,
                       .step = lead.step,
                       .total = lead.total,
                       .epoch = lead.epoch,
                       .epochs = lead.epochs,
                       .world = lead.world,
                       .steps_per_second = lead.steps_per_second,
                       .updated = lead.changed};
  if (lead.done()) progress.percentage = 100;
  if (lead.total <= 0) return progress;
  const int64_t step = std::min(lead.step, lead.total);
  const double share = static_cast<double>(step) / static_cast<double>(lead.total);
  if (!progress.percentage) progress.percentage = static_cast<int64_t>(share * 100);
  if (lead.steps_per_second <= 0) return progress;
  const double seconds = static_cast<double>(lead.total - step) / lead.steps_per_second;
  if (seconds <= static_cast<double>(kRemainingMaxSeconds)) {
    progress.remaining_seconds = static_cast<int64_t>(std::ceil(seconds));
  }
  return progress;
}

json::Value JobProgress::ToJson() const {
  json::Object out{{"phase", phase}, {"step", step}};
  if (total > 0) out["totalSteps"] = total;
  if (epochs > 0) {
    out["epoch"] = epoch;
    out["totalEpochs"] = epochs;
  }
  if (percentage) out["progressPercentage"] = *percentage;
  if (steps_per_second > 0) out["stepsPerSecond"] = steps_per_second;
  if (remaining_seconds) out["estimatedRemainingSeconds"] = *remaining_seconds;
  out["world"] = world;
  out["lastUpdatedTime"] = FormatTime(updated);
  return out;
}

std::optional<JobProgress> ProgressOfJob(const json::Value& job) {
  const json::Value* found = json::Find(job, {"status", "progress"});
  if (found == nullptr || !found->is_object()) return std::nullopt;
  JobProgress out;
  out.phase = json::GetString(*found, {"phase"});
  out.step = GetCount(*found, "step");
  out.total = GetCount(*found, "totalSteps");
  out.epoch = GetCount(*found, "epoch");
  out.epochs = GetCount(*found, "totalEpochs");
  out.world = GetCount(*found, "world");
  out.steps_per_second = std::max(0.0, GetNumber(*found, "stepsPerSecond"));
  if (json::Find(*found, {"progressPercentage"})) {
    out.percentage = std::min<int64_t>(GetCount(*found, "progressPercentage"), 100);
  }
  if (json::Find(*found, {"estimatedRemainingSeconds"})) {
    out.remaining_seconds =
        std::min(GetCount(*found, "estimatedRemainingSeconds"), kRemainingMaxSeconds);
  }
  out.updated = ParseTime(json::GetString(*found, {"lastUpdatedTime"})).value_or(WallTime());
  return out;
}

std::string StacksScript(const RankProgress& rank) {
  // SigCgt is a mask in hexadecimal digits; SIGUSR1 is the second bit of the third from the right.
  return StrCat("p=", rank.pid, "\nf=${SWELL_REPORT_FILE%/*}/stacks-", rank.file, R"sh(
state=$(sed -n 's/^State:[[:space:]]*//p' /proc/$p/status 2>/dev/null)
if [ -z "$state" ]; then echo "the process $p is gone"; exit 0; fi
case $state in T*|t*) echo "the process $p is stopped by a signal: $state"; exit 0;; esac
case $(sed -n 's/^SigCgt:[[:space:]]*//p' /proc/$p/status) in
*[2367abef]??) ;;
*) echo "the process $p has no handler that prints its stacks; its state is $state"; exit 0;;
esac
before=$(wc -c 2>/dev/null <"$f" || echo 0)
kill -USR1 $p
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  [ "$(wc -c 2>/dev/null <"$f" || echo 0)" -gt "$before" ] && break
  sleep 0.1
done
sleep 0.1
if [ "$(wc -c 2>/dev/null <"$f" || echo 0)" -gt "$before" ]; then
  # The main thread first, since it is what trains.
  {
    tail -c +$((before + 1)) "$f" | sed -n '/^Current thread/,/^$/p'
    tail -c +$((before + 1)) "$f" | sed '/^Current thread/,/^$/d'
  } | head -c 4000
else
  echo "the process $p did not print its stacks within 2s; its state is $state"
fi
)sh");
}

}  // namespace swell::api
