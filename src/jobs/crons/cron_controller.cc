#include "jobs/crons/cron_controller.h"

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "kube/api/crd/definitions.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/job.h"
#include "kube/controllers/queue.h"
#include "kube/controllers/workloads/active_jobs.h"
#include "kube/controllers/write_batch.h"

namespace swell::jobs {
namespace {

constexpr std::string_view kComponent = "cron-controller";
constexpr Duration kAfterItsTime = std::chrono::milliseconds(100);

bool IsOver(const json::Value& job) {
  const std::string_view word = api::JobStatusWord(job);
  return word == "Succeeded" || word == "Failed";
}

// KubeDL's word for a job that has not started is that of its first condition.
std::string_view HistoryWord(const json::Value& job) {
  const std::string_view word = api::JobStatusWord(job);
  return word == "Pending" ? "Created" : word;
}

// When the job ended, as its own status says.
std::string EndOf(const json::Value& job, WallTime now) {
  const std::string_view completed = json::GetString(job, {"status", "completionTime"});
  if (!completed.empty()) return std::string(completed);
  for (std::string_view type : {"Succeeded", "Complete", "Failed"}) {
    const auto condition = api::FindCondition(job, type);
    if (condition && condition->IsTrue() && !condition->last_transition_time.empty()) {
      return std::string(condition->last_transition_time);
    }
  }
  return api::FormatTime(now);
}

std::string GroupOf(const json::Value& job) {
  const std::string_view version = api::ApiVersionOf(job);
  return std::string(version.substr(0, version.find('/')));
}

// A run in the history, which outlives its job.
using RunKey = std::pair<std::string, std::string>;  // when it was created, name
RunKey KeyOfRow(const json::Value& row) {
  return {std::string(json::GetString(row, {"created"})),
          std::string(json::GetString(row, {"object", "name"}))};
}
RunKey KeyOfJob(const json::Value& job) {
  return {std::string(api::CreationTimestamp(job)), std::string(api::Name(job))};
}

json::Value RowOf(const json::Value& job, WallTime now) {
  json::Value row = json::Object{{"object", json::Object{{"apiGroup", GroupOf(job)},
                                                         {"kind", api::KindOf(job)},
                                                         {"name", api::Name(job)}}},
                                 {"status", HistoryWord(job)},
                                 {"created", api::CreationTimestamp(job)}};
  if (IsOver(job)) json::Set(row, {"finished"}, EndOf(job, now));
  return row;
}

bool IsFinished(const json::Value& row) { return json::Find(row, {"finished"}) != nullptr; }

// Until it is seen, an informer shows a job that was deleted.
std::string DeletedToken(const json::Value& job) { return StrCat("deleted ", api::Uid(job)); }

// An answer that the next attempt would get again.
bool IsFinal(const Status& status) {
  const Code code = status.code();
  return code == Code::kInvalid || code == Code::kForbidden || code == Code::kBadRequest ||
         code == Code::kNotFound || code == Code::kAlreadyExists;
}

}  // namespace

struct CronController::Pass {
  json::SharedValue cron;
  std::shared_ptr<controllers::WriteBatch> writes;
  WallTime now;
  json::Value status;
  std::vector<Run> active, over;  // oldest first
};

CronController::CronController(controllers::Context context)
    : context_(context),
      crons_(context_.informers.Of(client::resources::kCrons)),
      events_(controllers::MakeRecorder(context_, std::string(kComponent))),
      queue_(controllers::MakeQueue(context_, "crons", 16, this, &CronController::Reconcile)),
      client_(context_.executor, context_.server, context_.user, std::string(kComponent)) {
  controllers::Follow(crons_, controllers::Queued(queue_), [this](const json::SharedValue& it) {
    expected_.Forget(api::KeyOf(*it));
    unconfirmed_.erase(std::string(api::Uid(*it)));
    reported_.erase(std::string(api::Uid(*it)));
  });
  for (const api::Definition& kind : api::JobDefinitions()) {
    // Kinds that another operator runs are left to it.
    client::Informer* jobs = context_.informers.Find({kind.group, kind.version, kind.plural, true});
    if (jobs == nullptr) continue;
    jobs_.push_back(jobs);
    const controllers::ObjectHandler queue = controllers::OwnerQueued(queue_, "Cron");
    controllers::Follow(
        *jobs,
        [this, queue](const json::SharedValue& it) {
          expected_.Seen(api::KeyOf(*it));
          if (api::IsDeleting(*it)) expected_.Seen(DeletedToken(*it));
          queue(it);
        },
        [this, queue](const json::SharedValue& it) {
          expected_.Seen(api::KeyOf(*it));
          expected_.Seen(DeletedToken(*it));
          queue(it);
        });
  }
}

void CronController::Reconcile(const std::string& key, Done done) {
  const json::SharedValue cron = crons_.Get(key);
  if (!cron || api::IsDeleting(*cron)) return done(Duration::zero());
  const Duration wait = expected_.Remaining(key, context_.clock.Steady());
  if (wait > Duration::zero()) return done(wait);
  auto pass = std::make_shared<Pass>();
  pass->cron = cron;
  pass->now = context_.clock.Now();
  pass->writes = controllers::MakeBatch(std::move(done));
  pass->status = json::GetObject(*cron, {"status"});
  Observe(*pass);
  UpdateHistory(*pass);
  const std::string_view text = json::GetString(*cron, {"spec", "schedule"});
  const auto schedule = api::CronSchedule::Parse(text);
  bool sent = false;
  if (!schedule.ok()) {
    ReportOnce(*cron, "Warning", "InvalidSchedule", text,
               StrCat("spec.schedule ", Quote(text), ": ", schedule.status().message()));
  } else if (!json::GetBool(*cron, {"spec", "suspend"})) {
    sent = StartDue(pass, *schedule);
  }
  if (!sent) WriteStatus(*pass);
  pass->writes->Close();
}

void CronController::ReportOnce(const json::Value& cron,
                                std::string_view type,
                                std::string_view reason,
                                std::string_view about,
                                std::string_view message) {
  const auto [last, first] =
      reported_[std::string(api::Uid(cron))].try_emplace(std::string(reason));
  if (!first && last->second == about) return;
  last->second = about;
  events_.Record(cron, type, reason, message);
}

void CronController::Observe(Pass& pass) {
  for (client::Informer* kind : jobs_) {
    for (const json::SharedValue& job : kind->ByIndex("owner", api::Uid(*pass.cron))) {
      (IsOver(*job) ? pass.over : pass.active).push_back({job, &kind->resource()});
    }
  }
  for (auto* list : {&pass.active, &pass.over}) {
    std::sort(list->begin(), list->end(),
              [](const Run& a, const Run& b) { return KeyOfJob(*a.job) < KeyOfJob(*b.job); });
  }
  auto among = [](const std::vector<Run>& runs, std::string_view uid) {
    return std::any_of(runs.begin(), runs.end(),
                       [uid](const Run& run) { return api::Uid(*run.job) == uid; });
  };
  Unconfirmed& unconfirmed = unconfirmed_[std::string(api::Uid(*pass.cron))];
  const auto last = api::ParseTime(json::GetString(pass.status, {"lastScheduleTime"}));
  if (unconfirmed.started && (!last || *last < *unconfirmed.started)) {
    json::Set(pass.status, {"lastScheduleTime"}, api::FormatTime(*unconfirmed.started));
  } else {
    unconfirmed.started = std::nullopt;
  }
  std::set<std::string> shown;
  for (const json::Value& one : json::GetArray(pass.status, {"active"})) {
    std::string uid(json::GetString(one, {"uid"}));
    const std::string_view name = json::GetString(one, {"name"});
    const bool over = among(pass.over, uid);
    if (!unconfirmed.ended.contains(uid) && (over || !among(pass.active, uid))) {
      events_.Record(
          *pass.cron, "Normal", over ? "SawCompletedWorkload" : "MissingWorkload",
          StrCat(over ? "Saw completed workload: " : "Active workload went missing: ", name));
      unconfirmed.ended.insert(uid);
    }
    shown.insert(std::move(uid));
  }
  std::erase_if(unconfirmed.ended,
                [&shown](const std::string& uid) { return !shown.contains(uid); });
}

void CronController::UpdateHistory(Pass& pass) {
  std::map<RunKey, json::Value> rows;
  for (const json::Value& row : json::GetArray(pass.status, {"history"})) {
    rows[KeyOfRow(row)] = row;
  }
  std::map<RunKey, const Run*> runs;
  for (const auto* list : {&pass.active, &pass.over}) {
    for (const Run& run : *list) runs[KeyOfJob(*run.job)] = &run;
  }
  for (const auto& [key, run] : runs) rows[key] = RowOf(*run->job, pass.now);
  int64_t finished = 0;
  for (auto& [key, row] : rows) {
    if (!IsFinished(row) && !runs.contains(key)) {
      json::Set(row, {"status"}, "Deleted");
      json::Set(row, {"finished"}, api::FormatTime(pass.now));
    }
    finished += IsFinished(row) ? 1 : 0;
  }
  const int64_t limit = json::GetInt(*pass.cron, {"spec", "historyLimit"}, kHistoryLimit);
  for (auto it = rows.begin(); it != rows.end() && finished > limit;) {
    if (!IsFinished(it->second)) {
      ++it;
      continue;
    }
    const auto run = runs.find(it->first);
    if (run != runs.end()) DeleteRun(pass, *run->second);
    it = rows.erase(it);
    --finished;
  }
  json::Array history;
  size_t left_out = rows.size() - std::min(rows.size(), kListedMax);
  for (auto& [key, row] : rows) {
    if (left_out > 0) {
      --left_out;
      continue;
    }
    history.push_back(std::move(row));
  }
  // Written as an empty list: a merge patch would keep what is left out.
  if (!history.empty() || json::Find(pass.status, {"history"}) != nullptr) {
    json::Set(pass.status, {"history"}, std::move(history));
  }
}

bool CronController::StartDue(const std::shared_ptr<Pass>& pass,
                              const api::CronSchedule& schedule) {
  const json::Value& cron = *pass->cron;
  const std::string_view until = json::GetString(cron, {"spec", "deadline"});
  const auto deadline = api::ParseTime(until);
  if (deadline && pass->now > *deadline) {
    ReportOnce(cron, "Normal", "Deadline", until,
               "the deadline has passed, and no more runs start");
    return false;
  }
  const auto last = api::ParseTime(json::GetString(pass->status, {"lastScheduleTime"}));
  const WallTime since = last.value_or(api::CreationTime(cron));
  const api::CronSchedule::Due due = schedule.DueAt(pass->now, since);
  if (due.too_many) {
    // A long run has it miss more and more times: one event is enough until a run starts.
    ReportOnce(cron, "Warning", "TooManyMissedTimes", api::FormatTime(since),
               "too many missed start times. Check clock skew");
  }
  if (due.next) pass->writes->RequeueAfter(*due.next - pass->now + kAfterItsTime);
  return due.run && StartRun(pass, *due.run);
}

bool CronController::StartRun(const std::shared_ptr<Pass>& pass, WallTime at) {
  const json::Value& cron = *pass->cron;
  const std::string time = api::FormatTime(at);
  auto run = MakeCronRun(cron, at);
  if (!run.ok()) {
    ReportOnce(cron, "Warning", "FailedCreate", time,
               StrCat("Error creating workload: ", run.status().message()));
    return false;
  }
  const bool there = Has(cron, *run);
  // A leader before this one made it, and died before it said so, or the answer was lost. The name
  // of the template says nothing about the time; a run of an earlier time was created before it.
  if (there && (!run->named || api::CreationTime(*Find(*run)) >= at)) {
    json::Set(pass->status, {"lastScheduleTime"}, time);
    return false;
  }
  std::string_view policy = json::GetString(cron, {"spec", "concurrencyPolicy"}, "Allow");
  if (run->named && policy != "Forbid") {
    ReportOnce(cron, "Normal", "OverridePolicy", time,
               "metadata.name has been specified in workload template, override cron concurrency "
               "policy as Forbidden");
    policy = "Forbid";
  }
  if (policy == "Forbid" && !pass->active.empty()) {
    ReportOnce(cron, "Normal", "AlreadyActive", time,
               "Not starting because prior execution is running and concurrency policy is Forbid");
    return false;
  }
  if (there) {
    // The run before has the name. When it is gone, this pass comes again.
    DeleteRun(*pass, {Find(*run), &run->resource});
    return false;
  }
  if (policy == "Replace") {
    for (const Run& one : pass->active) DeleteRun(*pass, one);
    pass->active.clear();
  }
  Create(pass, *run, at);
  return true;
}

bool CronController::Has(const json::Value& cron, const NewRun& run) const {
  const json::SharedValue job = Find(run);
  const auto owner = job ? api::ControllerOf(*job) : std::nullopt;
  return owner && owner->uid == api::Uid(cron);
}

client::Informer* CronController::InformerOf(const NewRun& run) const {
  for (client::Informer* kind : jobs_) {
    const client::Resource& one = kind->resource();
    if (one.group == run.resource.group && one.plural == run.resource.plural) return kind;
  }
  return nullptr;
}

json::SharedValue CronController::Find(const NewRun& run) const {
  const client::Informer* kind = InformerOf(run);
  return kind != nullptr ? kind->Get(api::KeyOf(run.job)) : nullptr;
}

void CronController::Create(const std::shared_ptr<Pass>& pass, const NewRun& run, WallTime at) {
  if (InformerOf(run) == nullptr) {
    const Status refused(Code::kForbidden,
                         StrCat("another operator runs ", run.resource.GroupResource(), " here"));
    return OnCreated(pass, run, at, refused);
  }
  expected_.Add(api::KeyOf(*pass->cron), api::KeyOf(run.job), context_.clock.Steady());
  client_.Create(run.resource, api::Namespace(*pass->cron), run.job,
                 pass->writes->Track([this, pass, run, at](const Result<json::SharedValue>& made) {
                   if (!made.ok()) expected_.Seen(api::KeyOf(run.job));
                   OnCreated(pass, run, at, made.status());
                 }));
}

void CronController::OnCreated(const std::shared_ptr<Pass>& pass,
                               const NewRun& run,
                               WallTime at,
                               const Status& status) {
  const json::Value& cron = *pass->cron;
  // The Cron was deleted meanwhile. One that has its name now has a status of its own.
  const auto unconfirmed = unconfirmed_.find(std::string(api::Uid(cron)));
  if (unconfirmed == unconfirmed_.end()) return;
  const std::string_view name = api::Name(run.job);
  const bool there = status.code() == Code::kAlreadyExists;
  const bool of_someone_else = there && Find(run) && !Has(cron, run);
  if (status.ok()) {
    events_.Record(cron, "Normal", "SuccessfulCreate", StrCat("Created workload: ", name));
  } else if (!there || of_someone_else) {
    events_.Record(cron, "Warning", "FailedCreate",
                   StrCat("Error creating workload: ", status.message()));
  }
  // A job that is refused would be refused again: the next time counts.
  if (status.ok() || IsFinal(status)) {
    json::Set(pass->status, {"lastScheduleTime"}, api::FormatTime(at));
    unconfirmed->second.started = at;
  }
  WriteStatus(*pass);
}

void CronController::DeleteRun(Pass& pass, const Run& run) {
  if (api::IsDeleting(*run.job)) return;
  const std::string token = DeletedToken(*run.job);
  unconfirmed_[std::string(api::Uid(*pass.cron))].ended.emplace(api::Uid(*run.job));
  expected_.Add(api::KeyOf(*pass.cron), token, context_.clock.Steady());
  client_.Delete(*run.of, api::Namespace(*run.job), api::Name(*run.job),
                 {.propagation = "Background", .precondition_uid = std::string(api::Uid(*run.job))},
                 pass.writes->Track([this, cron = pass.cron, job = run.job,
                                     token](const Result<json::SharedValue>& gone) {
                   if (!gone.ok()) return expected_.Seen(token);
                   events_.Record(*cron, "Normal", "SuccessfulDelete",
                                  StrCat("Deleted workload: ", api::Name(*job)));
                 }));
}

void CronController::WriteStatus(Pass& pass) {
  json::Array active;
  const size_t count = pass.active.size();
  for (size_t i = count - std::min(count, kListedMax); i < count; ++i) {
    active.push_back(api::ObjectReferenceTo(*pass.active[i].job));
  }
  const json::Value known = json::GetObject(*pass.cron, {"status"});
  controllers::SetActive(known, std::move(active), pass.status);
  if (json::Equal(known, pass.status)) return;
  client_.Patch(client::resources::kCrons, api::Namespace(*pass.cron), api::Name(*pass.cron),
                client::PatchType::kMerge, json::Object{{"status", std::move(pass.status)}},
                pass.writes->Track(), "status");
}

}  // namespace swell::jobs
