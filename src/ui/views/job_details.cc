#include "ui/views/job_details.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/strings.h"
#include "cli/pods/log_parts.h"
#include "cli/views/goodput_view.h"
#include "cli/views/job_report.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "ui/views/views.h"

namespace swell::ui {
namespace {

// A pod's end is noted a moment after the pages saw it stop.
constexpr Duration kNoted = std::chrono::seconds(10);
// The ends that objects tell have no fractions: one may read as if it came before its beginning.
constexpr Duration kWholeSeconds = std::chrono::seconds(1);

constexpr std::string_view kStraggler = "Straggler";
constexpr std::array<std::string_view, 5> kWarnings = {
    kStraggler, "CheckpointFailed", "MetricNotFinite", "WorldMismatch", "SuspensionWaits"};

json::Value CountOrNull(int64_t count) { return count > 0 ? json::Value(count) : nullptr; }

template <class T>
json::Value NumberOrNull(const std::optional<T>& number) {
  return number ? json::Value(*number) : json::Value(nullptr);
}

// It is suspended, and its pods ran until then.
bool WasSuspendedIn(const cli::JobView& job, WallTime from, WallTime to) {
  const auto condition = api::FindCondition(*job.object, "Suspended");
  if (!condition || !condition->IsTrue()) return false;
  const auto since = condition->Since();
  return since && *since + kWholeSeconds >= from && *since <= to;
}

// Another pod of the member began between its end and that of the attempt, which so outlived it.
bool RanOn(const cli::JobView& job, std::string_view member, WallTime ended, WallTime to) {
  const auto within = [&](std::optional<WallTime> started) {
    return started && *started >= ended && *started + kWholeSeconds <= to;
  };
  for (const json::Value& one : json::GetArray(*job.object, {"status", "attempts"})) {
    if (json::GetString(one, {"member"}) != member) continue;
    if (within(api::ParseTime(json::GetString(one, {"started"})))) return true;
  }
  return std::any_of(job.pods.begin(), job.pods.end(), [&](const json::SharedValue& pod) {
    return api::Name(*pod) == member && within(api::StartTime(*pod));
  });
}

}  // namespace

json::Value ProgressOf(const cli::JobView& job) {
  if (job.progress) {
    const api::JobProgress& at = *job.progress;
    return json::Object{{"phase", TextOrNull(at.phase)},
                        {"step", at.step},
                        {"total", CountOrNull(at.total)},
                        {"epoch", at.epochs > 0 ? json::Value(at.epoch) : json::Value(nullptr)},
                        {"epochs", CountOrNull(at.epochs)},
                        {"percentage", NumberOrNull(at.percentage)},
                        {"etaSeconds", NumberOrNull(cli::RemainingSeconds(job))},
                        {"updated", api::FormatTime(at.updated)}};
  }
  const cli::JobReport report = cli::ReportOf(job);
  if (!report.step && !report.epoch) return nullptr;
  return json::Object{{"phase", nullptr},      {"step", NumberOrNull(report.step)},
                      {"total", nullptr},      {"epoch", NumberOrNull(report.epoch)},
                      {"epochs", nullptr},     {"percentage", nullptr},
                      {"etaSeconds", nullptr}, {"updated", nullptr}};
}

json::Value HangOf(const cli::JobView& job) {
  json::Array ranks;
  for (const json::Value& one : json::GetArray(*job.object, {"status", "hang", "ranks"})) {
    ranks.push_back(json::Object{{"rank", json::GetInt(one, {"rank"})},
                                 {"pod", TextOrNull(json::GetString(one, {"pod"}))},
                                 {"node", TextOrNull(json::GetString(one, {"node"}))},
                                 {"phase", TextOrNull(json::GetString(one, {"phase"}))},
                                 {"step", json::GetInt(one, {"step"})},
                                 {"since", TextOrNull(json::GetString(one, {"since"}))},
                                 {"deadlineSeconds", json::GetInt(one, {"deadlineSeconds"})},
                                 {"suspect", json::GetBool(one, {"suspect"})},
                                 {"stack", TextOrNull(json::GetString(one, {"stack"}))}});
  }
  const auto hung = api::FindCondition(*job.object, "Hung");
  if (!hung && ranks.empty()) return nullptr;
  return json::Object{
      {"now", !job.hung.empty()},
      {"message", hung ? TextOrNull(hung->message) : json::Value(nullptr)},
      {"since", hung ? TextOrNull(hung->last_transition_time) : json::Value(nullptr)},
      {"restarts", json::GetInt(*job.object, {"status", "hang", "restarts"})},
      {"ranks", std::move(ranks)}};
}

json::Array WarningsOf(const cli::JobView& job) {
  json::Array rows;
  if (job.over()) return rows;
  for (std::string_view type : kWarnings) {
    const auto condition = api::FindCondition(*job.object, type);
    if (!condition || !condition->IsTrue()) continue;
    rows.push_back(json::Object{{"type", boost::json::string_view(type)},
                                {"message", boost::json::string_view(condition->message)},
                                {"since", TextOrNull(condition->last_transition_time)}});
  }
  return rows;
}

json::Value GoodputDocument(const cli::JobView& job, const std::vector<cli::JobView>& others) {
  const auto view = cli::GoodputOf(*job.object);
  if (!view || job.over()) return nullptr;
  std::vector<cli::GoodputView> with;
  for (const cli::JobView& other : others) {
    if (other.ns != job.ns || other.kind != job.kind || other.over()) continue;
    if (auto one = cli::GoodputOf(*other.object)) with.push_back(std::move(*one));
  }
  json::Array sizes;
  for (const cli::GoodputView::Size& size : view->sizes) {
    json::Object row{{"members", size.members},
                     {"perSecond", size.per_second},
                     {"relative", size.relative},
                     {"measured", size.source == "measured"},
                     {"source", cli::SourceText(size.source)}};
    if (size.efficiency >= 0) row["efficiency"] = size.efficiency;
    sizes.push_back(std::move(row));
  }
  std::string sentence = cli::GoodputSentence(*view);
  if (!view->default_of.empty()) sentence = StrCat(cli::GoodputModeText(*view), ": ", sentence);
  return json::Object{{"sentence", std::move(sentence)},
                      {"next", TextOrNull(cli::NextGpuText(*view, std::move(with)))},
                      {"unit", view->unit},
                      {"members", view->members},
                      {"wanted", view->wanted},
                      {"noise", TextOrNull(cli::NoiseText(*view))},
                      {"fit", TextOrNull(view->fit)},
                      {"decision", TextOrNull(view->decision)},
                      {"typeDecision", TextOrNull(view->type_decision)},
                      {"sizes", std::move(sizes)}};
}

bool IsStraggler(const cli::JobView& job, std::string_view pod) {
  const auto condition = api::FindCondition(*job.object, kStraggler);
  if (job.over() || pod.empty() || !condition || !condition->IsTrue()) return false;
  const std::string_view text = condition->message;
  const auto of_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  // As a whole word: worker-1 is not worker-12.
  for (size_t at = text.find(pod); at != std::string_view::npos; at = text.find(pod, at + 1)) {
    const size_t end = at + pod.size();
    const bool begins = at == 0 || !of_name(text[at - 1]);
    if (begins && (end == text.size() || !of_name(text[end]))) return true;
  }
  return false;
}

json::Array LogsOf(const cli::JobView& job) {
  json::Array rows;
  const auto all = [](std::string_view) { return true; };
  for (const cli::LogPart& part : cli::LogPartsOf(job, all, {})) {
    if (part.pod && !cli::HasStarted(*part.pod)) continue;
    rows.push_back(json::Object{{"key", part.Key()},
                                {"member", part.member},
                                {"uid", part.uid},
                                {"node", TextOrNull(part.node)},
                                {"container", TextOrNull(part.container)},
                                {"attempt", part.attempt},
                                {"start", part.restart + 1},
                                {"live", part.pod != nullptr},
                                {"running", part.pod != nullptr && !api::HasEnded(*part.pod)},
                                {"result", TextOrNull(part.ResultText())},
                                {"started", TimeOrNull(part.started)},
                                {"ended", TimeOrNull(part.ended)}});
  }
  return rows;
}

json::Value EndOfAttempt(const cli::JobView& job, WallTime from, WallTime to) {
  bool suspended = WasSuspendedIn(job, from, to);
  std::string of_suspended;  // what a pod said that was told to stop
  json::Value end = nullptr;
  for (const json::Value& one : json::GetArray(*job.object, {"status", "attempts"})) {
    const auto ended = api::ParseTime(json::GetString(one, {"ended"}));
    if (!ended || *ended < from || *ended > to + kNoted) continue;
    const auto started = api::ParseTime(json::GetString(one, {"started"}));
    const bool later = started && *started >= to;
    if (later || RanOn(job, json::GetString(one, {"member"}), *ended, to)) continue;
    const std::string_view message = json::GetString(one, {"message"});
    const std::string_view result = json::GetString(one, {"result"});
    if (result == "Suspended") {
      suspended = suspended || message.empty();
      of_suspended = message;
    } else if (!message.empty()) {
      end = TextOrNull(message);
    } else if (end.is_null()) {
      // A pod that was made anew in that second and stopped tells a bare result, and no cause.
      end = TextOrNull(result);
    }
  }
  if (suspended) return "Suspended";
  if (!of_suspended.empty()) return json::Value(StrCat("Suspended: ", of_suspended));
  // The attempts of the status are those that another one followed. The job itself tells the end
  // of its last.
  const bool last =
      job.over() && job.ended && *job.ended + kWholeSeconds >= from && *job.ended <= to + kNoted;
  return end.is_null() && last ? json::Value(job.StatusText()) : end;
}

}  // namespace swell::ui
