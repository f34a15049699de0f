#include "ui/state/member_log.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"

namespace swell::ui {
namespace {

constexpr std::array<std::string_view, 6> kStates = {"queued", "starting",  "running",
                                                     "saving", "preempted", "resuming"};
constexpr size_t kTextMax = 1 << 20;
constexpr int64_t kMillisecond = 1'000'000;

// A pod counts the preemptions of its job. Not each member of an elastic one had a place before.
bool HadPlace(const JobLog& log, const json::Value& pod) {
  return std::any_of(log.spans.begin(), log.spans.end(), [&pod](const MemberSpan& span) {
    return span.member == api::Name(pod) && span.state != "queued" && span.uid != api::Uid(pod);
  });
}

// Empty: the pod is over.
std::string_view StateOf(const JobLog& log, const json::Value& pod) {
  if (api::HasEnded(pod)) return "";
  if (api::IsDeleting(pod)) return api::IsBound(pod) ? "saving" : "";
  const bool again =
      ParseInt(api::Annotation(pod, api::keys::kPreemptionsBefore)).value_or(0) > 0 &&
      HadPlace(log, pod);
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

// Empty: the pod is nobody's.
std::string KeyOf(const json::Value& pod) {
  const auto owner = api::ControllerOf(pod);
  if (!owner) return "";
  const std::string end = StrCat("-", api::Label(pod, "pod-template-hash"));
  if (owner->kind != "ReplicaSet" || end.size() == 1 || !owner->name.ends_with(end)) {
    return owner->uid;
  }
  return DeploymentLogKey(api::Namespace(pod),
                          owner->name.substr(0, owner->name.size() - end.size()));
}

}  // namespace

std::string DeploymentLogKey(std::string_view ns, std::string_view name) {
  return StrCat(ns, "/", name);
}

JobLog* MemberLog::LogOf(const std::string& key, WallTime now) {
  if (key.empty()) return nullptr;
  JobLog& log = jobs_[key];
  log.changed = now;
  if (jobs_.size() > kJobsMax) {
    const auto quiet = std::min_element(
        jobs_.begin(), jobs_.end(),
        [](const auto& a, const auto& b) { return a.second.changed < b.second.changed; });
    changed_.insert(quiet->first);
    jobs_.erase(quiet);
  }
  const auto found = jobs_.find(key);
  return found == jobs_.end() ? nullptr : &found->second;
}

void MemberLog::OnPod(const json::Value& pod, WallTime now) {
  const std::string key = KeyOf(pod);
  JobLog* const log = LogOf(key, now);
  if (log == nullptr) return;
  const std::string_view state = StateOf(*log, pod);
  const std::string_view uid = api::Uid(pod);
  MemberSpan* const open = OpenSpan(*log, uid);
  const bool seen = open != nullptr && !std::exchange(open->restored, false);
  if (open == nullptr || open->state != state) {
    const WallTime since = seen ? now : Since(pod, state, now);
    const WallTime from = open != nullptr ? std::max(open->from, since) : since;
    if (open != nullptr) open->to = from;
    changed_.insert(key);
    if (!state.empty()) {
      log->spans.push_back(
          {std::string(api::Name(pod)), std::string(uid), std::string(state), from, std::nullopt});
    }
    if (log->spans.size() > kSpansMax) log->spans.pop_front();
  }
  if (NoteCheckpoint(*log, pod)) changed_.insert(key);
}

bool MemberLog::NoteCheckpoint(JobLog& log, const json::Value& pod) {
  const auto time = api::ParseTime(api::Annotation(pod, api::keys::kCheckpointTime));
  if (!time || (!log.checkpoints.empty() && *time <= log.checkpoints.back().time)) {
    return false;
  }
  log.checkpoints.push_back({*time, ParseInt(api::Annotation(pod, api::keys::kStep)).value_or(0)});
  if (log.checkpoints.size() > kCheckpointsMax) log.checkpoints.pop_front();
  return true;
}

void MemberLog::OnPodGone(const json::Value& last, WallTime now) {
  const std::string key = KeyOf(last);
  JobLog* const log = LogOf(key, now);
  if (log == nullptr) return;
  MemberSpan* const open = OpenSpan(*log, api::Uid(last));
  if (open == nullptr) return;
  open->to = now;
  changed_.insert(key);
}

const JobLog* MemberLog::Find(std::string_view key) const {
  const auto found = jobs_.find(key);
  return found == jobs_.end() ? nullptr : &found->second;
}

std::set<std::string> MemberLog::TakeChanged() { return std::exchange(changed_, {}); }

void MemberLog::Restore(const std::string& key, std::string_view text) {
  if (jobs_.size() >= kJobsMax || jobs_.contains(key)) return;
  JobLog log = JobLogOf(text);
  if (!log.spans.empty()) jobs_[key] = std::move(log);
}

void MemberLog::CloseUnseen(const std::set<std::string, std::less<>>& pod_uids, WallTime until) {
  for (auto& [uid, log] : jobs_) {
    for (MemberSpan& span : log.spans) {
      if (span.to || !span.restored || pod_uids.contains(span.uid)) continue;
      span.to = std::max(span.from, until);
      changed_.insert(uid);
    }
  }
}

std::string TextOf(const JobLog& log) {
  json::Array names, spans, checkpoints;
  std::map<std::string, int64_t> places;
  const auto place = [&](const std::string& name) {
    const auto [it, fresh] = places.emplace(name, static_cast<int64_t>(names.size()));
    if (fresh) names.push_back(json::Value(name));
    return it->second;
  };
  const auto time = [](WallTime at) { return at.unix_ns / kMillisecond; };
  for (const MemberSpan& span : log.spans) {
    const json::Value to = span.to ? json::Value(time(*span.to)) : json::Value(nullptr);
    spans.push_back(json::Array{place(span.member), place(span.uid), json::Value(span.state),
                                time(span.from), to});
  }
  for (const JobLog::Checkpoint& one : log.checkpoints) {
    checkpoints.push_back(json::Array{time(one.time), one.step});
  }
  return json::Print(json::Object{{"names", std::move(names)},
                                  {"spans", std::move(spans)},
                                  {"checkpoints", std::move(checkpoints)}});
}

JobLog JobLogOf(std::string_view text) {
  JobLog log;
  const auto document = json::Parse(text, {.depth = 4, .bytes = kTextMax});
  if (!document.ok()) return log;
  const json::Array& names = json::GetArray(*document, {"names"});
  const auto name = [&names](const json::Value& place) -> std::string {
    const bool known = place.is_int64() && place.get_int64() >= 0 &&
                       static_cast<size_t>(place.get_int64()) < names.size();
    if (!known) return "";
    const json::Value& found = names[static_cast<size_t>(place.get_int64())];
    return found.is_string() ? std::string(json::View(found.get_string())) : "";
  };
  const auto time = [](const json::Value& ms) -> std::optional<WallTime> {
    constexpr int64_t kLatest = int64_t{1} << 43;  // milliseconds; no clock says so much
    if (!ms.is_int64() || ms.get_int64() < 0 || ms.get_int64() > kLatest) return std::nullopt;
    return WallTime{ms.get_int64() * kMillisecond};
  };
  for (const json::Value& one : json::GetArray(*document, {"spans"})) {
    if (!one.is_array() || one.get_array().size() != 5 || !one.get_array()[2].is_string()) continue;
    const json::Array& parts = one.get_array();
    const std::string_view state = json::View(parts[2].get_string());
    const auto from = time(parts[3]);
    MemberSpan span{name(parts[0]), name(parts[1]), std::string(state), from.value_or(WallTime()),
                    time(parts[4])};
    const bool known = std::find(kStates.begin(), kStates.end(), state) != kStates.end();
    if (!from || !known || span.member.empty() || span.uid.empty()) continue;
    span.restored = !span.to;
    log.changed = std::max(log.changed, span.to.value_or(span.from));
    log.spans.push_back(std::move(span));
    if (log.spans.size() > MemberLog::kSpansMax) log.spans.pop_front();
  }
  for (const json::Value& one : json::GetArray(*document, {"checkpoints"})) {
    if (!one.is_array() || one.get_array().size() != 2 || !one.get_array()[1].is_int64()) continue;
    const auto at = time(one.get_array()[0]);
    if (!at || (!log.checkpoints.empty() && *at <= log.checkpoints.back().time)) continue;
    log.checkpoints.push_back({*at, one.get_array()[1].get_int64()});
    if (log.checkpoints.size() > MemberLog::kCheckpointsMax) log.checkpoints.pop_front();
  }
  return log;
}

}  // namespace swell::ui
