#include "jobs/job_controller.h"

#include <algorithm>

#include "base/strings.h"
#include "jobs/decisions/job_gates.h"
#include "jobs/decisions/job_moves.h"
#include "jobs/decisions/job_progress.h"
#include "jobs/decisions/job_requests.h"
#include "kube/api/meta/failure_keys.h"
#include "kube/api/meta/gate_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/job.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/progress.h"
#include "kube/controllers/pod_facts.h"
#include "kube/controllers/queue.h"

namespace swell::jobs {
namespace {

// How long members of an elastic job may keep running after its first member has finished.
constexpr Duration kElasticDrainTimeout = std::chrono::seconds(60);
// Each pod is written with what it says of the others.
constexpr size_t kCreatedPerPass = 1000;
constexpr Duration kNextMembers = std::chrono::milliseconds(10);
// How often a job looks for an object that it refers to and that does not exist yet.
constexpr Duration kReadReferenceAgain = std::chrono::seconds(5);

// A script that saves itself when it is told to stop may well exit with 0. It has done its part
// only if its ranks say so.
bool EndedByPreemption(const json::Value& pod) {
  if (!controllers::WasPreempted(pod)) return false;
  const std::vector<api::RankProgress> ranks = api::RanksOf(pod);
  return ranks.empty() || !std::all_of(ranks.begin(), ranks.end(),
                                       [](const api::RankProgress& rank) { return rank.done(); });
}

// Success and the deadline. True when the job is over.
bool DecideEnd(JobPass& pass) {
  if (pass.kind.Succeeded(pass.spec, pass.counts)) {
    pass.Finish("Succeeded", pass.kind.Reason("Succeeded"),
                StrCat(pass.kind.kind(), " ", pass.name, " is successfully completed."));
    return true;
  }
  if (!pass.spec.active_deadline_seconds) return false;
  WallTime start = api::ParseTime(json::GetString(pass.status, {"startTime"})).value_or(pass.now);
  Duration left = start + std::chrono::seconds(*pass.spec.active_deadline_seconds) - pass.now;
  if (left.count() > 0) {
    pass.RequeueAfter(left);
    return false;
  }
  pass.Finish(
      "Failed", "DeadlineExceeded",
      StrCat(pass.kind.kind(), " ", pass.name, " has failed because it was active longer than ",
             *pass.spec.active_deadline_seconds, " seconds.", pass.FailureText()));
  return true;
}

// What is left to do for a job that is over: pods by policy, nothing left running, TTL.
void DecideFinished(JobPass& pass) {
  CleanPodPolicy policy = pass.valid ? pass.spec.clean_pod_policy : CleanPodPolicy::kRunning;
  bool failed = pass.IsTrue("Failed");
  for (const auto& [name, pod] : pass.pods) {
    if (api::IsDeleting(*pod)) continue;
    bool ended = api::HasEnded(*pod);
    if (policy == CleanPodPolicy::kAll || (policy == CleanPodPolicy::kRunning && !ended)) {
      pass.delete_pods.push_back(pod);
    } else if (!ended && (failed || !api::IsBound(*pod))) {
      // A failed job must not hold GPUs: pods without a node are deleted, running ones are stopped.
      if (!api::IsBound(*pod)) {
        pass.delete_pods.push_back(pod);
      } else if (api::Annotation(*pod, api::keys::kStopRequested).empty()) {
        pass.stop_pods.push_back(pod);
      }
    }
  }
  if (!pass.valid || !pass.spec.ttl_seconds_after_finished) return;
  WallTime end =
      api::ParseTime(json::GetString(pass.status, {"completionTime"})).value_or(pass.now);
  Duration left = end + std::chrono::seconds(*pass.spec.ttl_seconds_after_finished) - pass.now;
  if (left.count() <= 0) {
    pass.delete_job = true;
  } else {
    pass.RequeueAfter(left);
  }
}

// Pods of a job that is over are deleted, by its policy or by others. What they did stays known.
void KeepFinalCounts(JobPass& pass) {
  if (!pass.IsTrue("Succeeded") && !pass.IsTrue("Failed")) return;
  for (size_t i = 0; i < pass.counts.size(); ++i) {
    const std::string& role = pass.spec.replicas[i].type;
    const auto before = [&](std::string_view field) {
      return json::GetInt(pass.status, {"replicaStatuses", role, field});
    };
    ReplicaCount& count = pass.counts[i];
    count.succeeded = std::max(count.succeeded, before("succeeded"));
    count.failed = std::max(count.failed, before("failed"));
  }
}

bool StoppedBySuspension(const JobPass& pass) {
  const auto running = api::FindConditionIn(pass.status, "Running");
  return running && running->reason == pass.kind.Reason("Suspended");
}

void DecideRunning(JobPass& pass) {
  if (!pass.kind.Running(pass.spec, pass.counts) || pass.IsTrue("Running")) return;
  std::string message = StrCat(pass.kind.kind(), " ", pass.name, " is running.");
  const bool preempted = pass.IsTrue("Preempted");
  if (preempted) {
    pass.SetCondition("Preempted", false, "Resumed",
                      StrCat(pass.kind.kind(), " ", pass.name, " runs again."));
  }
  if (preempted || StoppedBySuspension(pass)) {
    int64_t running = 0;
    for (const ReplicaCount& count : pass.counts) running += count.running;
    const int64_t all = pass.spec.TotalReplicas();
    pass.AddEvent(
        "Normal", "Resumed",
        StrCat(pass.kind.kind(), " ", pass.name, " runs again",
               running < all ? StrCat(" with ", running, " of its ", all, " pods") : "", "."));
  }
  if (pass.IsTrue("Restarting")) {
    pass.SetCondition("Restarting", false, pass.kind.Reason("Running"), message);
  }
  pass.SetCondition("Running", true, pass.kind.Reason("Running"), message);
  if (pass.kind.kubedl_style_status()) {
    json::Array& conditions = json::FindMutable(pass.status, {"conditions"})->get_array();
    auto created = std::find_if(conditions.begin(), conditions.end(), [](const json::Value& one) {
      return json::GetString(one, {"type"}) == "Created";
    });
    if (created != conditions.end()) conditions.erase(created);
  }
  pass.AddEvent("Normal", pass.kind.Reason("Running"), message);
}

// A member that would start when others have finished already would wait for them for ever.
bool EndsElastically(const JobPass& pass) {
  if (!pass.spec.elastic || !pass.spec.grouped) return false;
  return std::any_of(pass.counts.begin(), pass.counts.end(),
                     [](const ReplicaCount& count) { return count.succeeded > 0; });
}

// Members that have nobody left to train with: they were not placed, wait to join, or run on long
// after the first member, where all others meet, has finished.
void StopStragglers(JobPass& pass) {
  auto leader = pass.pods.find(pass.spec.replicas.front().PodName(pass.name, 0));
  std::optional<WallTime> finished;
  if (leader != pass.pods.end() && api::Phase(*leader->second) == "Succeeded") {
    for (const api::ContainerStatus& container : api::ContainerStatuses(*leader->second)) {
      finished = container.finished_at;
    }
  }
  for (const auto& [name, pod] : pass.pods) {
    if (api::HasEnded(*pod) || api::IsDeleting(*pod)) continue;
    bool late = api::Phase(*pod) == "Pending" || controllers::ReportedWorld(*pod) == 0;
    if (!late && finished) {
      Duration left = *finished + kElasticDrainTimeout - pass.now;
      late = left.count() <= 0;
      if (!late) pass.RequeueAfter(left);
    }
    if (late) pass.delete_pods.push_back(pod);
  }
}

std::string_view PhaseWord(const JobPass& pass) {
  for (std::string_view word :
       {"Succeeded", "Failed", "Suspended", "Preempted", "Restarting", "Running"}) {
    if (!pass.IsTrue(word)) continue;
    if (word != "Running") return word;
    if (pass.IsTrue(kDegraded)) return "Degraded";
    return pass.IsTrue(kHung) ? "Hung" : word;
  }
  return "Pending";
}

// Lists show this message, so it names the object that the job waits for, for as long as it waits.
void SayCreated(JobPass& pass, bool is_new) {
  const std::string created = StrCat(pass.kind.kind(), " ", pass.name, " is created.");
  const auto said = api::FindConditionIn(pass.status, "Created");
  const bool of_ours = said && said->message.starts_with(created);
  if (!is_new && !of_ours) return;
  const std::string message =
      pass.waits_for.empty() ? created : StrCat(created, " ", pass.waits_for, ".");
  if (is_new || said->message != message) {
    pass.SetCondition("Created", true, pass.kind.Reason("Created"), message);
  }
}

// What is said when a job is new. True when the pass is decided: the job cannot be read, or not
// yet.
bool DecideUnreadable(JobPass& pass) {
  const bool is_new = json::GetArray(pass.status, {"conditions"}).empty();
  SayCreated(pass, is_new);
  if (!pass.waits_for.empty()) {
    if (is_new) pass.AddEvent("Warning", "ReferenceNotFound", pass.waits_for);
    pass.RequeueAfter(kReadReferenceAgain);
    return true;
  }
  if (!pass.valid) {
    pass.Finish("Failed", "InvalidSpec",
                StrCat(pass.kind.kind(), " ", pass.name, " cannot run: ", pass.invalid_because));
    return true;
  }
  const int64_t members = pass.spec.TotalReplicas();
  if (is_new && pass.spec.min_available.value_or(0) > members) {
    pass.AddEvent("Warning", "MinAvailableTooHigh",
                  StrCat("minAvailable is ", *pass.spec.min_available, ", but the job has ",
                         members, " members: it starts when all of them can"));
  }
  const auto ignored = is_new ? IgnoredFields(*pass.job) : std::vector<std::string>();
  if (!ignored.empty()) {
    pass.AddEvent("Warning", "FieldIgnored",
                  StrCat("the job runs as if it did not say ", Join(ignored, ", ")));
  }
  return false;
}

}  // namespace

JobController::JobController(controllers::Context context, std::unique_ptr<JobKind> kind)
    : context_(std::move(context)),
      kind_(std::move(kind)),
      jobs_(context_.informers.Of(kind_->resource())),
      pods_(context_.informers.Of(client::resources::kPods)),
      disruptions_(context_.informers.Of(client::resources::kNodes)),
      failures_(context_.informers.Of(client::resources::kNodes)),
      writes_(
          context_,
          *kind_,
          {.on_annotated = [this](const JobPass& pass) { failures_.NoteWritten(pass.dealt_with); },
           .on_status =
               [this](const JobPass& pass) {
                 if (pass.vanished_seen) disruptions_.Forget(pass.uid());
               },
           .on_again = [this](const std::string& key) { queue_.Add(key); }}),
      queue_(controllers::MakeQueue(
          context_, kind_->resource().GroupResource(), 64, this, &JobController::Reconcile)) {
  controllers::Follow(jobs_, controllers::Queued(queue_),
                      [this](const json::SharedValue& job) { OnJobGone(*job); });
  controllers::Follow(
      pods_, [this](const json::SharedValue& pod) { OnPod(*pod); },
      [this](const json::SharedValue& pod) { OnPodGone(pod); });
}

void JobController::OnJobGone(const json::Value& job) {
  const std::string uid(api::Uid(job));
  attempts_.Forget(uid);
  disruptions_.Forget(uid);
  gpu_time_.Forget(uid);
  health_.Forget(uid);
  size_.Forget(uid);
  writes_.Forget(uid);
}

void JobController::OnPod(const json::Value& pod) {
  auto owner = api::ControllerOf(pod);
  if (!owner || !kind_->Owns(*owner)) return;
  writes_.OnPodSeen(owner->uid, api::Name(pod));
  queue_.Add(StrCat(api::Namespace(pod), "/", owner->name));
}

void JobController::OnPodGone(const json::SharedValue& pod) {
  failures_.OnPodGone(std::string(api::Uid(*pod)));
  auto owner = api::ControllerOf(*pod);
  if (!owner || !kind_->Owns(*owner)) return;
  disruptions_.OnPodGone(owner->uid, *pod);
  const json::SharedValue job = jobs_.Get(StrCat(api::Namespace(*pod), "/", owner->name));
  if (job && api::Uid(*job) == owner->uid) attempts_.OnPodGone(owner->uid, pod);
  OnPod(*pod);
}

void JobController::Reconcile(const std::string& key, client::WorkQueue::Done done) {
  json::SharedValue job = jobs_.Get(key);
  if (!job || api::IsDeleting(*job)) return done(Duration::zero());
  auto pass = std::make_shared<JobPass>(*kind_);
  pass->key = key;
  pass->job = job;
  pass->ns = api::Namespace(*job);
  pass->name = api::Name(*job);
  pass->now = context_.clock.Now();
  Observe(*pass);
  NoteAttempts(*pass);
  Decide(*pass);
  if (pass->ends_now) NoteEnd(*pass);
  FillCounts(*pass);
  writes_.Write(pass, std::move(done));
}

void JobController::Observe(JobPass& pass) {
  const json::Value* status = api::FindStatus(*pass.job);
  pass.status = status && status->is_object() ? *status : json::Value(json::Object{});
  if (!json::Find(pass.status, {"conditions"})) {
    json::Set(pass.status, {"conditions"}, json::Array{});
  }
  pass.restarts = ParseInt(api::Annotation(*pass.job, api::keys::kRestarts)).value_or(0);
  for (const json::SharedValue& pod : pods_.ByIndex("owner", api::Uid(*pass.job))) {
    pass.pods[std::string(api::Name(*pod))] = pod;
  }
  pass.ObserveFailure();
  auto spec = pass.kind.Parse(*pass.job);
  if (spec.ok()) {
    pass.spec = std::move(spec).value();
    auto gang_class = pass.spec.GangClass();
    pass.gang_class = gang_class.ok() ? *gang_class : pass.spec.priority_class;
    pass.valid = true;
  } else if (spec.status().code() == Code::kNotFound) {
    pass.waits_for = spec.status().message();
  } else {
    pass.invalid_because = spec.status().message();
  }
  pass.counts.resize(pass.spec.replicas.size());
  for (size_t i = 0; i < pass.spec.replicas.size(); ++i) {
    for (int64_t k = 0; k < pass.spec.replicas[i].replicas; ++k) {
      auto it = pass.pods.find(pass.spec.replicas[i].PodName(pass.name, k));
      if (it == pass.pods.end()) continue;
      std::string_view phase = api::Phase(*it->second);
      ReplicaCount& count = pass.counts[i];
      const bool done = phase == "Succeeded" && !EndedByPreemption(*it->second);
      if (done) ++count.succeeded;
      if (done && k == 0) count.first_succeeded = true;
      if (phase == "Failed") ++count.failed;
      if (phase == "Running") ++count.running;
      if (phase == "Running" || phase == "Pending") ++count.active;
    }
  }
  KeepFinalCounts(pass);
}

void JobController::Decide(JobPass& pass) {
  const bool goes = !api::Annotation(*pass.job, api::keys::kDeleteWhenStopped).empty();
  const bool over = pass.IsTrue("Succeeded") || pass.IsTrue("Failed");
  if (goes && (over || (pass.spec.suspend && pass.pods.empty()))) {
    pass.delete_job = true;
    return;
  }
  if (over) {
    NoteSteps(pass);
    return DecideFinished(pass);
  }
  if (!api::OtherManager(*pass.job).empty()) return;
  if (DecideUnreadable(pass)) return;
  failures_.Explain(pass);
  failures_.NoteGivenUp(pass);
  JobFailures::DecideDegraded(pass);
  NoteProgress(pass);
  health_.NoteStragglers(pass);
  NoteGpuTime(pass, /*over=*/false);
  if (!pass.spec.suspend && pass.IsTrue("SuspensionWaits")) {
    pass.SetFirst("SuspensionWaits", false, "Resumed", "The job is not to be suspended any more.");
  }
  if (const std::string_view never = pass.spec.suspend ? NeverOpens(*pass.job) : "";
      !never.empty()) {
    return pass.Finish(
        "Failed", api::keys::kNeverSatisfied,
        StrCat(pass.kind.kind(), " ", pass.name,
               " has failed because its condition to start can never be met: ", never, "."));
  }
  if (pass.spec.suspend && !SuspensionWaits(pass)) return DecideSuspended(pass);
  if (pass.IsTrue("Suspended")) {
    pass.SetCondition("Suspended", false, pass.kind.Reason("Resumed"),
                      StrCat(pass.kind.kind(), " ", pass.name, " is resumed."));
    json::Set(pass.status, {"startTime"}, api::FormatTime(pass.now));
    // It is to start now: the user who resumes it has mended what failed.
    for (std::string_view key : {api::keys::kStartsFrom, api::keys::kPreemptsFrom}) {
      if (!api::Annotation(*pass.job, key).empty()) pass.annotations[key] = nullptr;
    }
  }
  if (!json::Find(pass.status, {"startTime"})) {
    json::Set(pass.status, {"startTime"}, api::FormatTime(pass.now));
  }
  if (DecideRequested(pass)) return;
  if (DecideMoved(pass)) return;
  if (DecideEnd(pass)) return;
  if (disruptions_.Decide(pass)) return;
  if (JobHealth::DecideHang(pass)) return;
  if (failures_.Decide(pass)) return;
  DecideRunning(pass);
  WantPods(pass);
  writes_.NoteRefusal(pass);
}

void JobController::DecideSuspended(JobPass& pass) {
  pass.StopPods(JobPass::Which::kUnfinished);
  EndHold(pass);
  std::string message = StrCat(pass.kind.kind(), " ", pass.name, " is suspended.");
  if (pass.IsTrue("Running")) {
    pass.SetCondition("Running", false, pass.kind.Reason("Suspended"), message);
  }
  if (!pass.IsTrue("Suspended")) {
    pass.SetCondition("Suspended", true, pass.kind.Reason("Suspended"), message);
    pass.AddEvent("Normal", pass.kind.Reason("Suspended"), message);
  }
  writes_.NoteRefusal(pass);
  json::Remove(pass.status, {"startTime"});
}

void JobController::WantPods(JobPass& pass) {
  if (EndsElastically(pass)) return StopStragglers(pass);
  const bool later = JobFailures::StartsLater(pass);
  const std::string held_until = JobFailures::HoldPreemption(pass);
  // After a stop the new pods wait until the last old one is gone, so that they start even.
  bool old_ones = !pass.spec.elastic && !pass.IsTrue("Running") &&
                  std::any_of(pass.pods.begin(), pass.pods.end(),
                              [](const auto& named) { return api::IsDeleting(*named.second); });
  if (old_ones) return;
  const bool all = !pass.spec.tiered() || pass.GangPlaced();
  for (const ReplicaSpec& replica : pass.spec.replicas) {
    for (int64_t k = 0; k < replica.replicas; ++k) {
      const std::string pod = replica.PodName(pass.name, k);
      if (later || pass.pods.contains(pod) || writes_.IsExpected(pass, pod)) continue;
      // Before its gang has its place, a member of another class would hold one to no use.
      if (!all && pass.GroupOf(replica, k) != pass.name) continue;
      if (pass.create_pods.size() == kCreatedPerPass) {
        pass.RequeueAfter(kNextMembers);
        continue;
      }
      json::Value member = MakeMember(pass.Parts(), replica, k);
      if (!held_until.empty()) {
        json::Set(member, {"metadata", "annotations", api::keys::kPreemptsFrom}, held_until);
      }
      pass.create_pods.push_back(std::move(member));
    }
  }
  for (const auto& [name, pod] : pass.pods) {
    if (!pass.Wants(name) && !api::IsDeleting(*pod)) pass.delete_pods.push_back(pod);
  }
  pass.want_group = true;
}

void JobController::NoteEnd(JobPass& pass) {
  health_.Forget(pass.uid());
  NoteGpuTime(pass, /*over=*/true);
  DecideFinished(pass);
}

void JobController::FillCounts(JobPass& pass) {
  if (pass.kind.has_phase()) json::Set(pass.status, {"phase"}, PhaseWord(pass));
  if (!pass.valid) return;
  json::Object statuses;
  for (size_t i = 0; i < pass.spec.replicas.size(); ++i) {
    const ReplicaCount& count = pass.counts[i];
    json::Object one;
    if (count.active > 0) one["active"] = count.active;
    if (count.succeeded > 0) one["succeeded"] = count.succeeded;
    if (count.failed > 0) one["failed"] = count.failed;
    // Which pods a HorizontalPodAutoscaler looks at.
    if (!pass.kind.kubedl_style_status()) {
      const bool one_group = pass.spec.grouped && !pass.spec.tiered();
      one["selector"] = StrCat(one_group ? api::keys::kPodGroup : api::keys::kJobName, "=",
                               pass.name, ",", one_group ? api::keys::kPodSet : api::keys::kJobRole,
                               "=", ToLower(pass.spec.replicas[i].type));
    }
    statuses[pass.spec.replicas[i].type] = std::move(one);
  }
  json::Set(pass.status, {"replicaStatuses"}, std::move(statuses));
  if (pass.restarts > 0) json::Set(pass.status, {"restarts"}, pass.restarts);
  if (pass.spec.elastic) size_.Fill(pass, disruptions_.MessageOf(pass.uid()));
  pass.kind.FillStatus(*pass.job, pass.spec, pass.counts, pass.now, pass.status);
}

// The pods that its members had before.
void JobController::NoteAttempts(JobPass& pass) {
  std::set<std::string> first;
  for (const ReplicaSpec& replica : pass.spec.replicas) {
    for (int64_t k = 0; k < replica.replicas && first.size() < JobAttempts::kMembersNoted; ++k) {
      first.insert(replica.PodName(pass.name, k));
    }
  }
  attempts_.Note(pass.uid(), first, pass.valid && pass.spec.suspend, pass.now, pass.status);
}

void JobController::NoteGpuTime(JobPass& pass, bool over) {
  // Their statuses read as in KubeDL's documents.
  if (pass.kind.kubedl_style_status()) return;
  const std::string uid = pass.uid();
  gpu_time_.Note(uid, pass.pods, pass.GangRuns(), pass.now, over, pass.status);
  if (over) gpu_time_.Forget(uid);
}

}  // namespace swell::jobs
