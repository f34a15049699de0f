#include "kube/node/health/node_health.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/node_health.h"

namespace swell::node {
namespace {

// By these an agent knows the conditions of its predecessor's scripts.
constexpr std::string_view kReasonPrefix = "Check";
constexpr std::string_view kTimedOut = "CheckTimedOut";
constexpr std::string_view kFailedEvent = "HealthCheckFailed";
constexpr std::string_view kPassedEvent = "HealthCheckPassed";
constexpr std::string_view kBrokenEvent = "HealthCheckBroken";

std::string_view StatusOf(Verdict verdict) {
  if (verdict == Verdict::kUnknown) return "Unknown";
  return verdict == Verdict::kGood ? "True" : "False";
}

}  // namespace

NodeHealth::NodeHealth(Executor& executor, Clock& clock, HealthSource& source, OnRound on_round)
    : clock_(clock),
      source_(source),
      on_round_(std::move(on_round)),
      timer_(executor),
      limit_(executor) {}

void NodeHealth::Start(const std::string& node, int64_t gpus) {
  node_ = node;
  gpu_count_ = gpus;
  Round();
}

void NodeHealth::Round() {
  const uint64_t number = ++asked_;
  limit_.Start(kRoundLimit, [this] { OnTimeout(); });
  source_.Check(node_, scope_.Wrap([this, number](const std::vector<HealthReport>& reports) {
    if (number != asked_) return;
    limit_.Cancel();
    OnReports(reports);
    timer_.Start(InDoubt() ? kInDoubt : kEvery, [this] { Round(); });
  }));
}

bool NodeHealth::InDoubt() const {
  const auto doubted = [](const auto& one) { return one.second.streak.against > 0; };
  return std::any_of(conditions_.begin(), conditions_.end(), doubted) ||
         std::any_of(gpus_.begin(), gpus_.end(), doubted);
}

// The round under way still counts if it ends: nothing else is asked before.
void NodeHealth::OnTimeout() {
  std::vector<Change> changes;
  for (auto& [type, condition] : conditions_) {
    Tell(type, condition, Verdict::kUnknown,
         {.type = type,
          .reason = std::string(kTimedOut),
          .message = "the checks of this node have not ended in time"},
         changes);
  }
  on_round_(changes, false);
}

bool NodeHealth::Streak::Add(Finding finding) {
  const bool is_bad = finding != Finding::kGood;
  if (!known) {
    known = true;
    bad = is_bad;
    return true;
  }
  if (is_bad == bad) {
    against = 0;
    return false;
  }
  const int enough = finding == Finding::kGood  ? kGoodInARow
                     : finding == Finding::kBad ? kBadInARow
                                                : 1;
  if (++against < enough) return false;
  bad = is_bad;
  against = 0;
  return true;
}

void NodeHealth::OnReports(std::vector<HealthReport> reports) {
  std::vector<Change> changes;
  std::set<std::string_view> seen;
  for (HealthReport& report : reports) {
    RefuseUnknownGpus(report);
    if (!conditions_.contains(report.type) && conditions_.size() == kConditionsMax) continue;
    seen.insert(report.type);
    Take(report, changes);
  }
  TakeGpus(reports, changes);
  seen.insert(api::kGpuHealthy);
  std::erase_if(conditions_, [&seen](const auto& one) { return !seen.contains(one.first); });
  on_round_(changes, rounds_++ == 0);
}

// A mistake of the check costs no GPU.
void NodeHealth::RefuseUnknownGpus(HealthReport& report) const {
  const auto wrong = std::find_if(report.gpus.begin(), report.gpus.end(), [this](const auto& one) {
    return one.index < 0 || one.index >= gpu_count_;
  });
  if (report.verdict != Verdict::kBad || wrong == report.gpus.end()) return;
  const std::string has = gpu_count_ == 0   ? "has none"
                          : gpu_count_ == 1 ? "has GPU 0 only"
                                            : StrCat("has GPUs 0 to ", gpu_count_ - 1);
  report.message = StrCat("the check blames GPU ", wrong->index, " (", wrong->message,
                          "), but the node ", has, "; correct the check");
  report.verdict = Verdict::kUnknown;
  report.reason = api::kCheckNoSuchGpu;
  report.gpus.clear();
}

void NodeHealth::Take(const HealthReport& report, std::vector<Change>& changes) {
  if (report.type == api::kGpuHealthy) return;
  Condition& condition = conditions_[report.type];
  const bool bad = report.verdict == Verdict::kBad;
  if (report.verdict != Verdict::kUnknown) {
    condition.streak.Add(!bad             ? Finding::kGood
                         : report.certain ? Finding::kCertainlyBad
                                          : Finding::kBad);
  }
  // One that contradicts what is told waits until it is sure.
  if (report.verdict != Verdict::kUnknown && condition.streak.bad != bad) return;
  Tell(report.type, condition, report.verdict, report, changes);
}

void NodeHealth::Tell(const std::string& type,
                      Condition& condition,
                      Verdict verdict,
                      const HealthReport& report,
                      std::vector<Change>& changes) {
  const bool first = condition.since == WallTime();
  const bool flips = first || condition.verdict != verdict;
  const bool was_bad = !first && condition.verdict == Verdict::kBad;
  if (!flips && condition.reason == report.reason && condition.message == report.message) return;
  const bool breaks = api::IsBrokenCheck(report.reason) && !api::IsBrokenCheck(condition.reason);
  if (flips) condition.since = clock_.Now();
  condition.verdict = verdict;
  condition.reason = report.reason;
  condition.message = report.message;
  const bool bad = verdict == Verdict::kBad;
  // An event when it becomes bad and when that is over; other changes are seen in the condition.
  if (flips && (bad || was_bad)) {
    changes.push_back(
        {bad, std::string(bad ? kFailedEvent : kPassedEvent),
         StrCat(type, " is ", StatusOf(verdict), " (", report.reason, "): ", report.message)});
  } else if (flips || bad) {
    changes.push_back({});
  }
  if (breaks) {
    changes.push_back({true, std::string(kBrokenEvent),
                       StrCat(type, " is Unknown (", report.reason, "): ", report.message)});
  }
}

// Each GPU has a streak of its own, whichever check blames it.
void NodeHealth::TakeGpus(const std::vector<HealthReport>& reports, std::vector<Change>& changes) {
  HealthReport told{.type = std::string(api::kGpuHealthy),
                    .reason = "CheckPassed",
                    .message = "no check finds fault with a GPU"};
  bool checked = conditions_.contains(told.type);
  std::set<std::string_view> unknown;  // checks that could not look
  std::map<int, bool> certain;         // GPUs with a fault
  for (const HealthReport& report : reports) {
    const bool of_gpus = report.type == told.type;
    checked |= of_gpus;
    if (report.verdict == Verdict::kUnknown) unknown.insert(report.type);
    if (of_gpus && report.verdict != Verdict::kGood) told = report;
    if (report.verdict != Verdict::kBad) continue;
    for (const GpuFault& fault : report.gpus) {
      if (fault.index < 0 || static_cast<size_t>(fault.index) >= kGpusMax) continue;
      certain[fault.index] |= report.certain;
      // At the start a fault counts at once: the agent may have known it before.
      const auto [gpu, fresh] = gpus_.try_emplace(fault.index);
      if (fresh && rounds_ > 0) gpu->second.streak.known = true;
      gpu->second.message = fault.message;
      gpu->second.blamed_by.insert(report.type);
    }
  }
  bad_gpus_.clear();
  for (auto& [index, gpu] : gpus_) {
    const auto fault = certain.find(index);
    const bool bad = fault != certain.end();
    // A check that could not look says nothing of a GPU that it blamed.
    const bool in_doubt =
        std::any_of(gpu.blamed_by.begin(), gpu.blamed_by.end(),
                    [&unknown](const std::string& type) { return unknown.contains(type); });
    if (bad) {
      gpu.streak.Add(fault->second ? Finding::kCertainlyBad : Finding::kBad);
    } else if (!in_doubt) {
      gpu.streak.Add(Finding::kGood);
    }
    if (gpu.streak.bad) bad_gpus_.insert(index);
  }
  std::erase_if(gpus_, [&certain](const auto& one) {
    return !one.second.streak.bad && !certain.contains(one.first);
  });
  if (!bad_gpus_.empty()) {
    if (told.verdict != Verdict::kBad) told.reason = api::kGpuUnhealthyReason;
    told.message = GpusText();
    Tell(told.type, conditions_[told.type], Verdict::kBad, told, changes);
  } else if (checked) {
    const bool waits = told.verdict == Verdict::kBad;  // for the second bad result
    if (waits && conditions_.contains(told.type)) return;
    if (waits) told = {.type = told.type, .reason = "CheckPassed", .message = "no GPU is bad yet"};
    Tell(told.type, conditions_[told.type], told.verdict, told, changes);
  }
}

std::string NodeHealth::GpusText() const {
  std::vector<std::string> parts;
  for (const int index : bad_gpus_) {
    parts.push_back(StrCat("GPU ", index, ": ", gpus_.at(index).message));
  }
  return Join(parts, "; ");
}

bool NodeHealth::IsBad(std::string_view type) const {
  const auto found = conditions_.find(type);
  return found != conditions_.end() && found->second.verdict == Verdict::kBad;
}

std::vector<json::Value> NodeHealth::Conditions() const {
  std::vector<json::Value> list;
  for (const auto& [type, condition] : conditions_) {
    list.push_back(json::Object{{"type", type},
                                {"status", StatusOf(condition.verdict)},
                                {"reason", condition.reason},
                                {"message", condition.message},
                                {"lastHeartbeatTime", api::FormatTime(clock_.Now())},
                                {"lastTransitionTime", api::FormatTime(condition.since)}});
  }
  return list;
}

std::vector<std::string> NodeHealth::Stale(const json::Value& node) const {
  std::vector<std::string> stale;
  if (rounds_ == 0) return stale;
  for (const api::Condition& one : api::Conditions(node)) {
    if (IsOfAgent(one) && !conditions_.contains(one.type)) stale.emplace_back(one.type);
  }
  return stale;
}

bool NodeHealth::IsOfAgent(const api::Condition& condition) {
  return condition.type.ends_with("Healthy") &&
         (condition.type == api::kGpuHealthy || condition.reason == api::kGpuUnhealthyReason ||
          condition.reason.starts_with(kReasonPrefix));
}

}  // namespace swell::node
