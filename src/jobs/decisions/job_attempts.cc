#include "jobs/decisions/job_attempts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "kube/api/meta/meta.h"
#include "kube/api/objects/failure.h"
#include "kube/api/objects/pod.h"

namespace swell::jobs {
namespace {

// The containers that have run: those have logs.
json::Array ContainersThatRan(const json::Value& pod) {
  json::Array ran;
  for (const auto& statuses : {api::InitContainerStatuses(pod), api::ContainerStatuses(pod)}) {
    for (const api::ContainerStatus& one : statuses) {
      if (!one.Runs() && !one.Ended() && one.restart_count == 0) continue;
      ran.push_back(json::Object{{"name", one.name}, {"restarts", one.restart_count}});
    }
  }
  return ran;
}

// The one whose log is shown first: the usual one, or the init container that kept it from running.
std::string ShownContainer(const json::Value& pod, const json::Array& ran) {
  std::string_view usual = api::Annotation(pod, "kubectl.kubernetes.io/default-container");
  const json::Array& mains = api::Containers(pod);
  if (usual.empty() && !mains.empty()) usual = api::ContainerName(mains[0]);
  for (const json::Value& one : ran) {
    if (json::GetString(one, {"name"}) == usual) return std::string(usual);
  }
  return std::string(json::GetString(ran.back(), {"name"}));
}

bool IsNoted(const json::Value& status, std::string_view uid) {
  const json::Array& attempts = json::GetArray(status, {"attempts"});
  return std::any_of(attempts.begin(), attempts.end(), [uid](const json::Value& one) {
    return json::GetString(one, {"uid"}) == uid;
  });
}

int64_t NextAttempt(const json::Array& attempts, std::string_view member) {
  int64_t last = 0;
  for (const json::Value& one : attempts) {
    if (json::GetString(one, {"member"}) != member) continue;
    last = std::max(last, json::GetInt(one, {"attempt"}));
  }
  return last + 1;
}

WallTime EndOf(const json::Value& pod, WallTime now) {
  std::optional<WallTime> end;
  for (const api::ContainerStatus& one : api::ContainerStatuses(pod)) {
    if (one.finished_at && (!end || *end < *one.finished_at)) end = one.finished_at;
  }
  return end.value_or(now);
}

std::string_view ResultOf(const json::Value& pod,
                          const std::optional<api::Failure>& failure,
                          bool suspended) {
  // Also a script that ends with an error when it is told to stop.
  const bool told = suspended && api::IsDeleting(pod);
  if (!failure && api::Phase(pod) == "Succeeded") return "Succeeded";
  if (!failure) return told ? "Suspended" : "Stopped";
  if (api::StatusReason(pod) == api::kNodeShutdown) return api::kNodeShutdown;
  if (failure->which == api::FailureClass::kPreempted) return "Preempted";
  return told ? "Suspended" : "Failed";
}

// Empty for a pod of which nothing has run.
std::optional<json::Object> AttemptOf(const json::Value& pod, bool suspended, WallTime now) {
  const json::Array containers_that_ran = ContainersThatRan(pod);
  if (containers_that_ran.empty()) return std::nullopt;
  const auto failure = api::FailureOf(pod, now);
  json::Object attempt{{"member", api::Name(pod)},
                       {"uid", api::Uid(pod)},
                       {"node", api::NodeName(pod)},
                       {"result", ResultOf(pod, failure, suspended)},
                       {"ended", api::FormatTime(EndOf(pod, now))},
                       {"containers", containers_that_ran}};
  attempt["container"] = ShownContainer(pod, containers_that_ran);
  if (const auto start = api::StartTime(pod)) attempt["started"] = api::FormatTime(*start);
  if (failure) attempt["message"] = failure->Sentence();
  return attempt;
}

}  // namespace

void JobAttempts::OnPodGone(const std::string& job_uid, const json::SharedValue& pod) {
  auto& gone = gone_[job_uid];
  gone.push_back(pod);
  while (gone.size() > kNotedMax) gone.pop_front();
}

void JobAttempts::Note(const std::string& job_uid,
                       const std::set<std::string>& first_members,
                       bool suspended,
                       WallTime now,
                       json::Value& status) {
  const auto found = gone_.find(job_uid);
  if (found == gone_.end()) return;
  // A pod is kept until a status that was read back names it: a write may fail.
  std::erase_if(found->second, [&status](const json::SharedValue& pod) {
    return IsNoted(status, api::Uid(*pod));
  });
  if (found->second.empty()) {
    gone_.erase(found);
    return;
  }
  json::Array attempts = json::GetArray(status, {"attempts"});
  std::erase_if(found->second, [&](const json::SharedValue& pod) {
    auto attempt = AttemptOf(*pod, suspended, now);
    if (!attempt) return true;
    const bool failed = json::GetString(json::Value(*attempt), {"result"}) == "Failed";
    if (!failed && !first_members.contains(std::string(api::Name(*pod)))) return true;
    (*attempt)["attempt"] = NextAttempt(attempts, api::Name(*pod));
    attempts.push_back(std::move(*attempt));
    return false;
  });
  if (attempts.size() > kNotedMax) {
    attempts.erase(attempts.begin(),
                   attempts.begin() + static_cast<std::ptrdiff_t>(attempts.size() - kNotedMax));
  }
  if (!attempts.empty()) json::Set(status, {"attempts"}, std::move(attempts));
}

}  // namespace swell::jobs
