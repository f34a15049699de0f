#include "sim/job_count_checker.h"

#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod_group.h"

namespace swell::sim {
namespace {

constexpr std::string_view kBatchJobs = "jobs.batch";
constexpr std::string_view kScheduler = "swell-scheduler";

}  // namespace

JobCountChecker::JobCountChecker(SimHistory& history) : history_(history) {
  history_.OnChange([this](const store::Change& change) { OnChange(change); });
  history_.OnAnswer([this](uint64_t, const api::RestRequest& request, int http_status) {
    if (http_status < 300) OnWrite(request);
  });
}

// The deletion is durable now: the mark that explains it must be durable before. One that somebody
// else asked for, and that the scheduler only makes shorter, needs none.
void JobCountChecker::OnWrite(const api::RestRequest& request) {
  if (request.method != "DELETE" || request.user_agent != kScheduler) return;
  const auto body = json::Parse(request.body);
  if (!body.ok()) return;
  const auto pod = pods_.find(json::GetString(*body, {"preconditions", "uid"}));
  if (pod == pods_.end() || pod->second.marked || pod->second.ending) return;
  history_.Violation(
      StrCat("pod ", pod->second.name, " is deleted by the scheduler, and not marked"));
}

void JobCountChecker::OnChange(const store::Change& change) {
  if (change.type == store::EventType::kDeleted) {
    const auto pod = pods_.find(change.entry->attributes.uid);
    if (pod != pods_.end()) End(pod->second);
    return;
  }
  const store::Key& key = change.entry->key;
  const json::SharedValue object = change.entry->Parsed();
  if (key.resource == "pods") return OnPod(*object);
  if (key.resource == "podgroups.swell.dev") return OnGroup(*object);
  if (key.resource == kBatchJobs || key.resource == "pytorchjobs.kubeflow.org" ||
      key.resource == "trainingjobs.swell.dev") {
    OnJob(StrCat(key.resource, " ", key.ns, "/", key.name), *object);
  }
}

void JobCountChecker::OnPod(const json::Value& object) {
  const std::string uid(api::Uid(object));
  Pod& pod = pods_[uid];
  pod.name = api::Name(object);
  if (const auto job = api::ControllerOf(object)) jobs_[job->uid].pods.insert(uid);
  if (!api::Annotation(object, api::keys::kPreemptedRule).empty()) pod.marked = true;
  const std::string_view phase = api::StatusPhase(object);
  const bool over = phase == "Succeeded" || phase == "Failed";
  if (!pod.ending && (over || api::IsDeleting(object))) {
    End(pod);
    pod.in_time = phase == "Succeeded";
  }
  pod.succeeded = phase == "Succeeded";
  pod.failed = phase == "Failed" && !pod.excused;
}

void JobCountChecker::End(Pod& pod) {
  if (!std::exchange(pod.ending, true)) pod.excused = pod.marked;
}

// The members of a gang may be marked together.
void JobCountChecker::OnGroup(const json::Value& object) {
  for (const api::EvictionRecord& record : api::EvictionRecords(object)) {
    for (const std::string_view uid : record.pods) {
      const auto pod = pods_.find(uid);
      if (pod != pods_.end()) pod->second.marked = true;
    }
  }
}

void JobCountChecker::OnJob(const std::string& key, const json::Value& object) {
  Job& job = jobs_[std::string(api::Uid(object))];
  job.key = key;
  if (key.starts_with(kBatchJobs)) return OnBatchJob(object, job);
  const int64_t restarts = ParseInt(api::Annotation(object, api::keys::kRestarts)).value_or(0);
  const int64_t failed = Count(job, &Pod::failed);
  if (restarts <= failed) return;
  history_.Violation(
      StrCat(key, " counts ", restarts, " failures; pods that failed by themselves: ", failed));
}

void JobCountChecker::OnBatchJob(const json::Value& object, Job& job) {
  for (const json::Value& uid :
       json::GetArray(object, {"status", "uncountedTerminatedPods", "failed"})) {
    if (!job.named.insert(std::string(json::View(uid.get_string()))).second) continue;
    const auto pod = pods_.find(json::View(uid.get_string()));
    if (pod == pods_.end() || !pod->second.excused) continue;
    history_.Violation(
        StrCat(job.key, " counts ", pod->second.name, " as failed, which was preempted"));
  }
  const auto pending = static_cast<int64_t>(
      json::GetArray(object, {"status", "uncountedTerminatedPods", "succeeded"}).size());
  const int64_t counted = json::GetInt(object, {"status", "succeeded"}) + pending;
  const int64_t succeeded = Count(job, &Pod::succeeded);
  if (counted > succeeded) {
    history_.Violation(StrCat(job.key, " counts ", counted, " successes of ", succeeded));
  }
  const int64_t in_time = Count(job, &Pod::in_time);
  if (!api::ConditionIsTrue(object, "Complete") || counted >= in_time) return;
  history_.Violation(
      StrCat(job.key, " is complete with ", counted, " successes, and had ", in_time));
}

int64_t JobCountChecker::Count(const Job& job, bool Pod::*fact) const {
  int64_t count = 0;
  for (const std::string& uid : job.pods) count += pods_.at(uid).*fact;
  return count;
}

}  // namespace swell::sim
