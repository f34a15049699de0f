#include "ui/state/member_log.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"

namespace swell::ui {
namespace {

// Empty: the pod is over.
std::string_view StateOf(const json::Value& pod) {
  if (api::HasEnded(pod)) return "";
  if (api::IsDeleting(pod)) return api::IsBound(pod) ? "saving" : "";
  const bool again = ParseInt(api::Annotation(pod, api::keys::kPreemptionsBefore)).value_or(0) > 0;
  if (!api::IsBound(pod)) return again ? "preempted" : "queued";
  if (api::Phase(pod) == "Running") return "running";
  return again ? "resuming" : "starting";
}

MemberSpan* OpenSpan(JobLog& log, std::string_view uid) {
  for (auto span = log.spans.rbegin(); span != log.spans.rend(); ++span) {
    if (span->uid == uid && !span->to) return &*span;
  }
  return nullptr;
}

// A pod that is first seen now may be what it is for long.
WallTime Since(const json::Value& pod, std::string_view state, WallTime now) {
  if (state == "queued" || state == "preempted") return std::min(now, api::CreationTime(pod));
  if (state != "running") return now;
  for (const api::ContainerStatus& container : api::ContainerStatuses(pod)) {
    if (const auto started = api::ParseTime(container.started_at)) return std::min(now, *started);
  }
  return std::min(now, api::StartTime(pod).value_or(now));
}

}  // namespace

JobLog* MemberLog::LogOf(const json::Value& pod, WallTime now) {
  const auto owner = api::ControllerOf(pod);
  if (!owner) return nullptr;
  JobLog& log = jobs_[owner->uid];
  log.changed = now;
  if (jobs_.size() > kJobsMax) {
    jobs_.erase(std::min_element(jobs_.begin(), jobs_.end(), [](const auto& a, const auto& b) {
      return a.second.changed < b.second.changed;
    }));
  }
  const auto found = jobs_.find(owner->uid);
  return found == jobs_.end() ? nullptr : &found->second;
}

void MemberLog::OnPod(const json::Value& pod, WallTime now) {
  JobLog* const log = LogOf(pod, now);
  if (log == nullptr) return;
  const std::string_view state = StateOf(pod);
  const std::string_view uid = api::Uid(pod);
  MemberSpan* const open = OpenSpan(*log, uid);
  if (open == nullptr || open->state != state) {
    const WallTime from = open == nullptr ? Since(pod, state, now) : now;
    if (open != nullptr) open->to = now;
    if (!state.empty()) {
      log->spans.push_back(
          {std::string(api::Name(pod)), std::string(uid), std::string(state), from, std::nullopt});
    }
    if (log->spans.size() > kSpansMax) log->spans.pop_front();
  }
  NoteCheckpoint(*log, pod);
}

void MemberLog::NoteCheckpoint(JobLog& log, const json::Value& pod) {
  const auto time = api::ParseTime(api::Annotation(pod, api::keys::kCheckpointTime));
  if (!time || (!log.checkpoints.empty() && *time <= log.checkpoints.back().time)) return;
  log.checkpoints.push_back({*time, ParseInt(api::Annotation(pod, api::keys::kStep)).value_or(0)});
  if (log.checkpoints.size() > kCheckpointsMax) log.checkpoints.pop_front();
}

void MemberLog::OnPodGone(const json::Value& last, WallTime now) {
  JobLog* const log = LogOf(last, now);
  if (log == nullptr) return;
  if (MemberSpan* open = OpenSpan(*log, api::Uid(last))) open->to = now;
}

const JobLog* MemberLog::Find(std::string_view job_uid) const {
  const auto found = jobs_.find(job_uid);
  return found == jobs_.end() ? nullptr : &found->second;
}

}  // namespace swell::ui
