#include "scheduling/pending_reporter.h"

#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/pod_facts.h"
#include "scheduling/pod_group.h"

namespace swell::scheduling {
namespace {

constexpr std::string_view kLeastChange = " Would start with: ";
constexpr Duration kRefusedPause = std::chrono::seconds(5);
constexpr size_t kSweptMin = 256;

// What stays the same while nodes fill and empty: no numbers, and no plural s.
std::string WithoutNumbers(std::string_view message) {
  std::string words(message.substr(0, message.find(kLeastChange)));
  std::erase_if(words, [](char c) { return (c >= '0' && c <= '9') || c == 's'; });
  return words;
}

std::string MessageOf(const json::Value& pod) {
  const std::optional<api::Condition> known = api::FindCondition(pod, "PodScheduled");
  return known ? std::string(known->message) : std::string();
}

}  // namespace

PendingReporter::PendingReporter(const controllers::Context& context,
                                 client::EventRecorder& events,
                                 FindWaiting find,
                                 PendingReporterOptions options)
    : context_(context),
      events_(events),
      groups_(context.informers.Of(client::resources::kPodGroups)),
      pods_(context.informers.Of(client::resources::kPods)),
      find_(std::move(find)),
      options_(options),
      client_(context.executor, context.server, context.user, "swell-scheduler") {}

void PendingReporter::Report(const sched::Waiting& waiting) {
  if (waiting.group.empty() && waiting.pods.empty()) return;
  if (jobs_.size() > 2 * std::max(kept_by_sweep_, kSweptMin)) Sweep();
  const std::string& key = waiting.group.empty() ? waiting.pods.front() : waiting.group;
  const SteadyTime now = context_.clock.Steady();
  auto [it, added] = jobs_.try_emplace(key);
  Job& job = it->second;
  job.group = waiting.group;
  job.pods = waiting.pods;
  job.surplus = waiting.surplus;
  job.message = waiting.reason;
  if (!waiting.least_change.empty()) job.message += StrCat(kLeastChange, waiting.least_change);
  // An earlier scheduler may have reported it, or this one, and it was forgotten since.
  if (added && !job.pods.empty()) {
    if (json::SharedValue pod = find_(job.pods.front())) job.reported = MessageOf(*pod);
    job.reported_at = now;
  }
  if (now - job.reported_at > 2 * options_.numbers_pause) job.changes = 0;
  const bool unreported = HasUnreportedPod(job);
  if (unreported && waiting.incomplete) {
    AwaitMembers(key, job);
  } else if (unreported) {
    ReportAgainAt(key, job, std::nullopt);
    unreported_.insert(key);
  } else if (job.message == job.reported) {
    ReportAgainAt(key, job, std::nullopt);
  } else {
    const bool new_reason = WithoutNumbers(job.message) != WithoutNumbers(job.reported);
    const Duration pause = std::min<Duration>(
        options_.numbers_pause, options_.reason_pause * (1LL << std::min(job.changes, 8)));
    ReportAgainAt(key, job, job.reported_at + (new_reason ? pause : options_.numbers_pause));
  }
  Pump();
}

bool PendingReporter::HasUnreportedPod(const Job& job) const {
  if (job.pods.empty()) return job.reported.empty();
  return std::any_of(job.pods.begin(), job.pods.end(), [this](const std::string& key) {
    json::SharedValue pod = find_(key);
    return pod && MessageOf(*pod).empty();
  });
}

void PendingReporter::AwaitMembers(const std::string& key, Job& job) {
  const SteadyTime now = context_.clock.Steady();
  const bool more = job.pods.size() > std::exchange(job.came, job.pods.size());
  if (job.repeat_at && !more) return;
  if (!job.coming_since) job.coming_since = now;
  ReportAgainAt(key, job,
                std::min(now + options_.members_pause, *job.coming_since + options_.members_limit));
}

void PendingReporter::ReportAgainAt(const std::string& key,
                                    Job& job,
                                    std::optional<SteadyTime> when) {
  if (job.repeat_at) repeats_.erase({*job.repeat_at, key});
  job.repeat_at = when;
  if (when) repeats_.insert({*when, key});
}

void PendingReporter::Pump() {
  timer_.Cancel();
  const SteadyTime now = context_.clock.Steady();
  while (writing_ < options_.jobs_at_once && !unreported_.empty()) {
    const std::string key = std::move(unreported_.extract(unreported_.begin()).value());
    if (auto it = jobs_.find(key); it != jobs_.end()) Write(key, it->second);
  }
  while (writing_ < options_.jobs_at_once && !repeats_.empty()) {
    const SteadyTime due = std::max(repeats_.begin()->first, next_repeat_);
    if (due > now) {
      timer_.Start(due - now, [this] { Pump(); });
      return;
    }
    const std::string key = repeats_.begin()->second;
    Job& job = jobs_.at(key);
    const auto writes = static_cast<double>(job.pods.size() + 1);
    next_repeat_ =
        now + Duration(std::llround(1e9 * writes / std::max(options_.repeats_per_second, 1e-3)));
    Write(key, job);
  }
}

// Pods that began to start meanwhile do not wait any more: nothing is reported of them.
void PendingReporter::Write(const std::string& key, Job& job) {
  ReportAgainAt(key, job, std::nullopt);
  if (job.writing > 0) {
    ReportAgainAt(key, job, context_.clock.Steady() + options_.reason_pause);
    return;
  }
  std::vector<json::SharedValue> waiting;
  for (const std::string& pod : job.pods) {
    if (json::SharedValue found = find_(pod)) waiting.push_back(std::move(found));
  }
  if (waiting.empty() && !job.pods.empty()) {
    jobs_.erase(key);
    return;
  }
  job.coming_since.reset();
  const bool new_reason = WithoutNumbers(job.message) != WithoutNumbers(job.reported);
  job.changes += new_reason;
  job.reported = job.message;
  job.reported_at = context_.clock.Steady();
  job.writing = 1;
  ++writing_;
  for (const json::SharedValue& pod : waiting) {
    if (MessageOf(*pod) == job.message) continue;
    ++job.writing;
    to_write_.push_back({key, api::KeyOf(*pod), new_reason});
  }
  if (!job.group.empty()) WriteGroup(key, new_reason, job);
  WritePods();
  OnWritten(key, Status::Ok());  // there may have been nothing to write
}

// Each pod gets the reason that is the latest when its turn comes.
void PendingReporter::WritePods() {
  while (!to_write_.empty() && (client_.in_order() || pods_writing_ < options_.pods_at_once)) {
    const PodOfJob next = std::move(to_write_.front());
    to_write_.pop_front();
    const json::SharedValue pod = find_(next.pod);
    const auto nomination = nominations_.extract(next.pod);
    json::Object status;
    if (pod && !next.job.empty() && MessageOf(*pod) != jobs_.at(next.job).message) {
      const Job& job = jobs_.at(next.job);
      status["conditions"] = Conditions(*pod, job.message);
      if (next.new_reason) RecordWaiting(*pod, job);
    }
    if (pod && nomination) status["nominatedNodeName"] = nomination.mapped();
    if (!status.empty()) {
      WritePod(*pod, std::move(status), next.job);
    } else if (!next.job.empty()) {
      OnWritten(next.job, Status::Ok());
    }
  }
}

void PendingReporter::WritePod(const json::Value& pod, json::Value status, const std::string& job) {
  ++pods_writing_;
  json::Value patch = json::Object{{"metadata", json::Object{{"uid", api::Uid(pod)}}},
                                   {"status", std::move(status)}};
  client_.Patch(
      client::resources::kPods, api::Namespace(pod), api::Name(pod), client::PatchType::kStrategic,
      patch,
      [this, job](const Result<json::SharedValue>& result) {
        --pods_writing_;
        if (!job.empty()) OnWritten(job, result.status());
        Pump();
        WritePods();
      },
      "status");
}

// Nobody is warned that a job which trains could use more.
void PendingReporter::RecordWaiting(const json::Value& pod, const Job& job) {
  if (job.surplus) {
    events_.Record(pod, "Normal", "WaitsToGrow", job.message);
  } else {
    events_.Record(pod, "Warning", "FailedScheduling", job.message);
  }
}

json::Value PendingReporter::Conditions(const json::Value& pod, const std::string& message) const {
  json::Array conditions;
  // The transition time stays that of the first report.
  if (const auto known = api::FindCondition(pod, "PodScheduled")) {
    conditions.push_back(*known->document);
  }
  api::SetCondition(conditions, "PodScheduled", "False", "Unschedulable", message,
                    context_.clock.Now());
  return conditions;
}

void PendingReporter::Nominate(const std::string& pod, const std::string& node) {
  if (node.empty()) {
    nominations_.erase(pod);
  } else if (nominations_.insert_or_assign(pod, node).second) {
    new_nominations_.push_back(pod);
  }
}

void PendingReporter::WriteNominations() {
  for (std::string& pod : std::exchange(new_nominations_, {}))
    to_write_.push_back({"", std::move(pod), false});
  WritePods();
}

// One write less for each group that waits.
json::Object PendingReporter::FirstCounts(const json::Value& group) const {
  if (!api::StatusPhase(group).empty()) return {};
  const PodGroupCounts counts(pods_.ByIndex("group", api::KeyOf(group)));
  json::Object status = PodGroupStatus(group, counts, context_.clock.Now());
  return json::GetString(status, {"phase"}) == "Pending" ? status : json::Object();
}

void PendingReporter::WriteGroup(const std::string& key, bool new_reason, Job& job) {
  json::SharedValue group = groups_.Get(job.group);
  if (!group || api::StatusMessage(*group) == job.message) return;
  if (new_reason) {
    SWELL_LOG_INFO("scheduler", "waiting", {"group", job.group}, {"because", job.message});
  }
  json::Object status = FirstCounts(*group);
  status["reason"] = "Unschedulable";
  status["message"] = job.message;
  ++job.writing;
  client_.Patch(
      client::resources::kPodGroups, api::Namespace(*group), api::Name(*group),
      client::PatchType::kMerge, json::Object{{"status", std::move(status)}},
      [this, key](const Result<json::SharedValue>& result) {
        OnWritten(key, result.status());
        Pump();
      },
      "status");
}

void PendingReporter::OnWritten(const std::string& key, const Status& status) {
  auto it = jobs_.find(key);
  if (it == jobs_.end()) return;
  Job& job = it->second;
  if (!status.ok() && status.code() != Code::kNotFound) job.refused = status;
  if (--job.writing > 0) return;
  --writing_;
  const Status refused = std::exchange(job.refused, Status::Ok());
  if (refused.ok()) return;
  SWELL_LOG_WARNING("scheduler", "cannot report why a job waits", {"job", key},
                    {"error", refused.ToString()});
  job.reported.clear();
  const SteadyTime later = context_.clock.Steady() + kRefusedPause;
  ReportAgainAt(key, job, job.repeat_at ? std::min(*job.repeat_at, later) : later);
}

// The next report of a forgotten job reads from its pods what was reported last.
void PendingReporter::Sweep() {
  const SteadyTime now = context_.clock.Steady();
  std::erase_if(jobs_, [&](const auto& entry) {
    const Job& job = entry.second;
    return !job.repeat_at && job.writing == 0 && !unreported_.contains(entry.first) &&
           now - job.reported_at > 2 * options_.numbers_pause;
  });
  kept_by_sweep_ = jobs_.size();
}

}  // namespace swell::scheduling
