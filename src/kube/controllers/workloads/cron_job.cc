#include "kube/controllers/workloads/cron_job.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/queue.h"
#include "kube/controllers/workloads/active_jobs.h"

namespace swell::controllers {
namespace {

constexpr std::string_view kComponent = "cronjob-controller";
constexpr std::string_view kScheduledAt = "batch.kubernetes.io/cronjob-scheduled-timestamp";
constexpr int64_t kMinuteNs = 60'000'000'000;

bool IsOver(const json::Value& job) {
  return api::ConditionIsTrue(job, "Complete") || api::ConditionIsTrue(job, "Failed");
}

}  // namespace

struct CronJobController::Pass {
  json::SharedValue cron;
  std::shared_ptr<WriteBatch> writes;
  WallTime now;
  json::Value status;
  std::vector<json::SharedValue> active, complete, failed;  // oldest first
};

CronJobController::CronJobController(Context context)
    : context_(context),
      cron_jobs_(context_.informers.Of(client::resources::kCronJobs)),
      jobs_(context_.informers.Of(client::resources::kJobs)),
      events_(MakeRecorder(context_, std::string(kComponent))),
      queue_(MakeQueue(context_, "cronjobs", 16, this, &CronJobController::Reconcile)),
      client_(context_.executor, context_.server, context_.user, std::string(kComponent)) {
  Follow(cron_jobs_, Queued(queue_));
  Follow(jobs_, OwnerQueued(queue_, "CronJob"), OwnerQueued(queue_, "CronJob"));
}

void CronJobController::Reconcile(const std::string& key, Done done) {
  const json::SharedValue cron = cron_jobs_.Get(key);
  if (!cron || api::IsDeleting(*cron)) return done(Duration::zero());
  Pass pass;
  pass.cron = cron;
  pass.now = context_.clock.Now();
  pass.writes = MakeBatch(std::move(done));
  pass.status = json::GetObject(*cron, {"status"});
  Observe(pass);
  RemoveHistory(pass);
  const std::string_view text = json::GetString(*cron, {"spec", "schedule"});
  const auto schedule = api::CronSchedule::Parse(text);
  const auto zone = TimeZone::Load(json::GetString(*cron, {"spec", "timeZone"}, "UTC"));
  if (!schedule.ok()) {
    events_.Record(*cron, "Warning", "UnparseableSchedule",
                   StrCat("spec.schedule ", Quote(text), ": ", schedule.status().message()));
  } else if (!zone.ok()) {
    events_.Record(*cron, "Warning", "UnknownTimeZone",
                   StrCat("invalid timeZone: ", zone.status().message()));
  } else if (!json::GetBool(*cron, {"spec", "suspend"})) {
    StartDue(pass, *schedule, *zone);
  }
  WriteStatus(pass);
  pass.writes->Close();
}

void CronJobController::Observe(Pass& pass) {
  for (const json::SharedValue& job : jobs_.ByIndex("owner", api::Uid(*pass.cron))) {
    if (!IsOver(*job)) {
      pass.active.push_back(job);
      continue;
    }
    const bool good = api::ConditionIsTrue(*job, "Complete");
    (good ? pass.complete : pass.failed).push_back(job);
    for (const json::Value& known : json::GetArray(pass.status, {"active"})) {
      if (json::GetString(known, {"uid"}) != api::Uid(*job)) continue;
      events_.Record(*pass.cron, "Normal", "SawCompletedJob",
                     StrCat("Saw completed job: ", api::Name(*job),
                            ", condition: ", good ? "Complete" : "Failed"));
      const std::string_view ended = json::GetString(*job, {"status", "completionTime"});
      if (good && !ended.empty()) json::Set(pass.status, {"lastSuccessfulTime"}, ended);
    }
  }
  for (auto* list : {&pass.active, &pass.complete, &pass.failed}) {
    std::sort(list->begin(), list->end(), IsOlder);
  }
}

void CronJobController::RemoveHistory(Pass& pass) {
  auto trim = [&](std::vector<json::SharedValue>& jobs, const char* field, int64_t fallback) {
    const int64_t over =
        static_cast<int64_t>(jobs.size()) - json::GetInt(*pass.cron, {"spec", field}, fallback);
    for (int64_t i = 0; i < over; ++i) {
      const json::SharedValue& job = jobs[static_cast<size_t>(i)];
      if (!api::IsDeleting(*job)) DeleteJob(pass, job);
    }
  };
  trim(pass.complete, "successfulJobsHistoryLimit", 3);
  trim(pass.failed, "failedJobsHistoryLimit", 1);
}

void CronJobController::StartDue(Pass& pass,
                                 const api::CronSchedule& schedule,
                                 const TimeZone& zone) {
  const json::Value& cron = *pass.cron;
  const auto last = api::ParseTime(json::GetString(cron, {"status", "lastScheduleTime"}));
  WallTime since = last.value_or(api::CreationTime(cron));
  const json::Value* deadline = json::Find(cron, {"spec", "startingDeadlineSeconds"});
  if (deadline != nullptr && deadline->is_number()) {
    const WallTime earliest = pass.now - std::chrono::seconds(deadline->to_number<int64_t>());
    if (earliest.unix_ns > since.unix_ns) since = earliest;
  }
  const api::CronSchedule::Due due = schedule.DueAt(pass.now, since, zone);
  if (due.too_many) {
    events_.Record(cron, "Warning", "TooManyMissedTimes",
                   "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or "
                   "check clock skew");
  }
  if (due.next) {
    pass.writes->RequeueAfter(*due.next - pass.now + std::chrono::milliseconds(100));
  }
  if (due.run) StartJob(pass, *due.run);
}

void CronJobController::StartJob(Pass& pass, WallTime at) {
  const json::Value& cron = *pass.cron;
  const std::string_view policy = json::GetString(cron, {"spec", "concurrencyPolicy"}, "Allow");
  if (policy == "Forbid" && !pass.active.empty()) {
    events_.Record(cron, "Normal", "JobAlreadyActive",
                   "Not starting job because prior execution is running and concurrency policy is "
                   "Forbid");
    return;
  }
  if (policy == "Replace") {
    for (const json::SharedValue& job : pass.active) DeleteJob(pass, job);
    pass.active.clear();
  }
  const std::string name = StrCat(api::Name(cron), "-", at.unix_ns / kMinuteNs);
  json::Object annotations =
      json::GetObject(cron, {"spec", "jobTemplate", "metadata", "annotations"});
  annotations[kScheduledAt] = api::FormatTime(at);
  json::Value job = json::Object{{"apiVersion", "batch/v1"}, {"kind", "Job"}};
  json::Set(
      job, {"metadata"},
      json::Object{{"name", name},
                   {"namespace", api::Namespace(cron)},
                   {"labels", json::GetObject(cron, {"spec", "jobTemplate", "metadata", "labels"})},
                   {"annotations", std::move(annotations)},
                   {"ownerReferences", json::Array{api::MakeOwnerReference(cron)}}});
  json::Set(job, {"spec"}, json::GetObject(cron, {"spec", "jobTemplate", "spec"}));
  json::Set(pass.status, {"lastScheduleTime"}, api::FormatTime(at));
  client_.Create(
      client::resources::kJobs, api::Namespace(cron), job,
      pass.writes->Track([this, cron = pass.cron, name](const Result<json::SharedValue>& made) {
        if (made.ok()) {
          events_.Record(*cron, "Normal", "SuccessfulCreate", StrCat("Created job ", name));
        } else if (made.status().code() != Code::kAlreadyExists) {
          events_.Record(*cron, "Warning", "FailedCreate",
                         StrCat("Error creating job: ", made.status().message()));
        }
      }));
}

void CronJobController::DeleteJob(Pass& pass, const json::SharedValue& job) {
  client_.Delete(
      client::resources::kJobs, api::Namespace(*job), api::Name(*job),
      {.propagation = "Background", .precondition_uid = std::string(api::Uid(*job))},
      pass.writes->Track([this, cron = pass.cron, job](const Result<json::SharedValue>& gone) {
        if (!gone.ok()) return;
        events_.Record(*cron, "Normal", "SuccessfulDelete",
                       StrCat("Deleted job ", api::Name(*job)));
      }));
}

void CronJobController::WriteStatus(Pass& pass) {
  json::Array active;
  for (const json::SharedValue& job : pass.active) active.push_back(api::ObjectReferenceTo(*job));
  const json::Value known = json::GetObject(*pass.cron, {"status"});
  SetActive(known, std::move(active), pass.status);
  if (json::Equal(known, pass.status)) return;
  client_.Patch(client::resources::kCronJobs, api::Namespace(*pass.cron), api::Name(*pass.cron),
                client::PatchType::kMerge, json::Object{{"status", std::move(pass.status)}},
                pass.writes->Track(), "status");
}

}  // namespace swell::controllers
