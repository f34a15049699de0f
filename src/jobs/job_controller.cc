#include "jobs/job_controller.h"

#include <algorithm>

#include "base/strings.h"
#include "jobs/job_gates.h"
#include "jobs/job_pass.h"
#include "kube/api/meta/failure_keys.h"
#include "kube/api/meta/gate_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/job.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/progress.h"
#include "kube/controllers/pod_facts.h"

namespace swell::controllers {
namespace {

// How long members of an elastic job may keep running after its first member has finished.
constexpr Duration kElasticDrainTimeout = std::chrono::seconds(60);
// The scheduler deletes the pods that it marks. If one is still there after this, the scheduler has
// died.
constexpr Duration kMarkedMax = std::chrono::seconds(10);
// After this a pod that was created but never seen is created again: it may have been deleted while
// the watch was broken.
constexpr Duration kWatchLag = std::chrono::seconds(30);
// How often a job looks for an object that it refers to and that does not exist yet.
constexpr Duration kReadReferenceAgain = std::chrono::seconds(5);

}  // namespace

JobController::JobController(Context context, std::unique_ptr<JobKind> kind)
    : context_(std::move(context)),
      kind_(std::move(kind)),
      jobs_(context_.informers.Of(kind_->resource())),
      pods_(context_.informers.Of(client::resources::kPods)),
      groups_(context_.informers.Of(client::resources::kPodGroups)),
      services_(context_.informers.Of(client::resources::kServices)),
      nodes_(context_.informers.Of(client::resources::kNodes)),
      events_(MakeRecorder(context_, ToLower(kind_->kind()) + "-controller")),
      queue_(context_.executor,
             context_.metrics,
             kind_->resource().GroupResource(),
             64,
             [this](const std::string& key, client::WorkQueue::Done done) {
               Reconcile(key, std::move(done));
             }),
      client_(context_.executor,
              context_.server,
              context_.user,
              ToLower(kind_->kind()) + "-controller") {
  Follow(jobs_, Queued(queue_), [this](const json::SharedValue& job) {
    vanished_.erase(std::string(api::Uid(*job)));
    resizing_.erase(std::string(api::Uid(*job)));
    refused_.erase(std::string(api::Uid(*job)));
    expected_.Forget(std::string(api::Uid(*job)));
    attempts_.Forget(std::string(api::Uid(*job)));
    gpu_time_.Forget(std::string(api::Uid(*job)));
  });
  Follow(
      pods_, [this](const json::SharedValue& pod) { OnPod(*pod); },
      [this](const json::SharedValue& pod) { OnPodGone(pod); });
}

// Two groups may have a kind of the same name.
bool JobController::Owns(const api::OwnerReference& owner) const {
  return owner.kind == kind_->kind() &&
         owner.api_version.starts_with(StrCat(kind_->resource().group, "/"));
}

void JobController::OnPod(const json::Value& pod) {
  auto owner = api::ControllerOf(pod);
  if (!owner || !Owns(*owner)) return;
  expected_.Seen(StrCat(owner->uid, "/", api::Name(pod)));
  queue_.Add(StrCat(api::Namespace(pod), "/", owner->name));
}

void JobController::OnPodGone(const json::SharedValue& pod) {
  counted_.erase(std::string(api::Uid(*pod)));
  auto owner = api::ControllerOf(*pod);
  if (!owner || !Owns(*owner)) return;
  if (WasPreempted(*pod)) {
    vanished_[owner->uid] = {StrCat(api::Name(*pod), ": ", PreemptionMessage(*pod)),
                             PodAge::Of(*pod)};
  }
  const json::SharedValue job = jobs_.Get(StrCat(api::Namespace(*pod), "/", owner->name));
  if (job && api::Uid(*job) == owner->uid) attempts_.OnPodGone(owner->uid, pod);
  OnPod(*pod);
}

void JobController::Reconcile(const std::string& key, client::WorkQueue::Done done) {
  if (!context_.informers.synced()) return done(kNotSynced);
  json::SharedValue job = jobs_.Get(key);
  if (!job || api::IsDeleting(*job)) return done(Duration::zero());
  auto pass = std::make_shared<Pass>();
  pass->key = key;
  pass->job = job;
  pass->ns = api::Namespace(*job);
  pass->name = api::Name(*job);
  pass->now = context_.clock.Now();
  Observe(*pass);
  NoteAttempts(*pass);
  Decide(*pass);
  FillCounts(*pass);
  Write(pass, std::move(done));
}

namespace {

// A script that saves itself when it is told to stop may well exit with 0. It has done its part
// only if its ranks say so.
bool EndedByPreemption(const json::Value& pod) {
  if (!WasPreempted(pod)) return false;
  const std::vector<api::RankProgress> ranks = api::RanksOf(pod);
  return ranks.empty() || !std::all_of(ranks.begin(), ranks.end(),
                                       [](const api::RankProgress& rank) { return rank.done(); });
}

}  // namespace

void JobController::Observe(Pass& pass) {
  const json::Value* status = api::FindStatus(*pass.job);
  pass.status = status && status->is_object() ? *status : json::Value(json::Object{});
  if (!json::Find(pass.status, {"conditions"})) {
    json::Set(pass.status, {"conditions"}, json::Array{});
  }
  pass.restarts = ParseInt(api::Annotation(*pass.job, keys::kRestarts)).value_or(0);
  for (const json::SharedValue& pod : pods_.ByIndex("owner", api::Uid(*pass.job))) {
    pass.pods[std::string(api::Name(*pod))] = pod;
  }
  ObserveFailure(pass);
  auto spec = kind_->Parse(*pass.job);
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
      std::string_view phase = Phase(*it->second);
      ReplicaCount& count = pass.counts[i];
      const bool done = phase == "Succeeded" && !EndedByPreemption(*it->second);
      if (done) ++count.succeeded;
      if (done && k == 0) count.first_succeeded = true;
      if (phase == "Failed") ++count.failed;
      if (phase == "Running") ++count.running;
      if (phase == "Running" || phase == "Pending") ++count.active;
    }
  }
}

void JobController::Decide(Pass& pass) {
  const bool goes = !api::Annotation(*pass.job, api::keys::kDeleteWhenStopped).empty();
  const bool over = pass.IsTrue("Succeeded") || pass.IsTrue("Failed");
  if (goes && (over || (pass.spec.suspend && pass.pods.empty()))) {
    pass.delete_job = true;
    return;
  }
  if (over) return DecideFinished(pass);
  if (!api::OtherManager(*pass.job).empty()) return;
  const bool is_new = json::GetArray(pass.status, {"conditions"}).empty();
  if (is_new) {
    SetCondition(pass, "Created", true, kind_->Reason("Created"),
                 StrCat(kind_->kind(), " ", pass.name, " is created."));
  }
  if (!pass.waits_for.empty()) {
    if (is_new) pass.AddEvent("Warning", "ReferenceNotFound", pass.waits_for);
    return pass.RequeueAfter(kReadReferenceAgain);
  }
  if (!pass.valid) {
    return Finish(pass, "Failed", "InvalidSpec",
                  StrCat(kind_->kind(), " ", pass.name, " cannot run: ", pass.invalid_because));
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
  DecideDegraded(pass);
  NoteProgress(pass);
  NoteGpuTime(pass, /*over=*/false);
  if (!pass.spec.suspend && pass.IsTrue("SuspensionWaits")) {
    SetFirst(pass, "SuspensionWaits", false, "Resumed", "The job is not to be suspended any more.");
  }
  if (const std::string_view never = pass.spec.suspend ? NeverOpens(*pass.job) : "";
      !never.empty()) {
    return Finish(
        pass, "Failed", api::keys::kNeverSatisfied,
        StrCat(kind_->kind(), " ", pass.name,
               " has failed because what it waits for can never come true: ", never, "."));
  }
  if (pass.spec.suspend && !SuspensionWaits(pass)) return DecideSuspended(pass);
  if (pass.IsTrue("Suspended")) {
    SetCondition(pass, "Suspended", false, kind_->Reason("Resumed"),
                 StrCat(kind_->kind(), " ", pass.name, " is resumed."));
    json::Set(pass.status, {"startTime"}, api::FormatTime(pass.now));
  }
  if (!json::Find(pass.status, {"startTime"})) {
    json::Set(pass.status, {"startTime"}, api::FormatTime(pass.now));
  }
  if (DecideRequested(pass)) return;
  if (DecideEnd(pass)) return;
  if (DecideDisrupted(pass)) return;
  if (DecideHang(pass)) return;
  if (DecideFailures(pass)) return;
  DecideRunning(pass);
  WantPods(pass);
  NoteRefusal(pass);
}

// Success and the deadline. True when the job is over.
bool JobController::DecideEnd(Pass& pass) {
  if (kind_->Succeeded(pass.spec, pass.counts)) {
    Finish(pass, "Succeeded", kind_->Reason("Succeeded"),
           StrCat(kind_->kind(), " ", pass.name, " is successfully completed."));
    return true;
  }
  if (!pass.spec.active_deadline_seconds) return false;
  WallTime start = api::ParseTime(json::GetString(pass.status, {"startTime"})).value_or(pass.now);
  Duration left = start + std::chrono::seconds(*pass.spec.active_deadline_seconds) - pass.now;
  if (left.count() > 0) {
    pass.RequeueAfter(left);
    return false;
  }
  Finish(pass, "Failed", "DeadlineExceeded",
         StrCat(kind_->kind(), " ", pass.name, " has failed because it was active longer than ",
                *pass.spec.active_deadline_seconds, " seconds.", FailureText(pass)));
  return true;
}

void JobController::Finish(Pass& pass,
                           std::string_view type,
                           std::string_view reason,
                           std::string message) {
  if (pass.IsTrue("Running")) {
    SetCondition(pass, "Running", false, reason, message);
  }
  NoteEnd(pass, type == "Failed", reason);
  NoteGpuTime(pass, /*over=*/true);
  SetCondition(pass, type, true, reason, message);
  json::Set(pass.status, {"completionTime"}, api::FormatTime(pass.now));
  pass.AddEvent(type == "Failed" ? "Warning" : "Normal", reason, std::move(message));
  DecideFinished(pass);
}

// What is left to do for a job that is over: pods by policy, nothing left running, TTL.
void JobController::DecideFinished(Pass& pass) {
  CleanPodPolicy policy = pass.valid ? pass.spec.clean_pod_policy : CleanPodPolicy::kRunning;
  bool failed = pass.IsTrue("Failed");
  for (const auto& [name, pod] : pass.pods) {
    if (api::IsDeleting(*pod)) continue;
    bool ended = HasEnded(*pod);
    if (policy == CleanPodPolicy::kAll || (policy == CleanPodPolicy::kRunning && !ended)) {
      pass.delete_pods.push_back(pod);
    } else if (!ended && (failed || !api::IsBound(*pod))) {
      // A failed job must not hold GPUs: pods without a node are deleted, running ones are stopped.
      if (!api::IsBound(*pod)) {
        pass.delete_pods.push_back(pod);
      } else if (api::Annotation(*pod, keys::kStopRequested).empty()) {
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

void JobController::DecideSuspended(Pass& pass) {
  StopPods(pass, Which::kUnfinished);
  std::string message = StrCat(kind_->kind(), " ", pass.name, " is suspended.");
  if (pass.IsTrue("Running")) {
    SetCondition(pass, "Running", false, kind_->Reason("Suspended"), message);
  }
  if (!pass.IsTrue("Suspended")) {
    SetCondition(pass, "Suspended", true, kind_->Reason("Suspended"), message);
    pass.AddEvent("Normal", kind_->Reason("Suspended"), message);
  }
  NoteRefusal(pass);
  json::Remove(pass.status, {"startTime"});
}

void JobController::StopPods(Pass& pass, Which which) {
  for (const auto& [name, pod] : pass.pods) {
    if (api::IsDeleting(*pod) || (which == Which::kUnfinished && HasEnded(*pod))) continue;
    const Duration marked = pass.now - PreemptionTime(*pod).value_or(WallTime());
    if (marked >= Duration::zero() && marked < kMarkedMax) {
      pass.RequeueAfter(kMarkedMax - marked);
    } else {
      pass.delete_pods.push_back(pod);
    }
  }
}

// Whether the node that the pod is on is gone or has stopped talking.
bool JobController::OnLostNode(const json::Value& pod) const {
  std::string_view name = api::NodeName(pod);
  if (name.empty()) return false;
  json::SharedValue node = nodes_.Get(name);
  if (!node) return true;
  const std::optional<api::Condition> ready = api::FindCondition(*node, "Ready");
  return ready && ready->status == "Unknown";
}

// Pods that were taken away, and what their peers did about it. True when the pass is decided.
bool JobController::DecideDisrupted(Pass& pass) {
  const LastPreemption last = LastPreemption::Of(pass.status);
  int64_t staying = 0;
  std::string preempted, disrupted;
  WallTime newest;          // of the pods that it stops, by the server's clock
  bool fresh = false;       // a pod that was made after the last preemption is preempted
  bool failed_old = false;  // a pod that the last preemption stopped has failed
  bool failed = false;
  bool lost_node = false;
  for (const auto& [name, pod] : pass.pods) {
    newest = std::max(newest, api::CreationTime(*pod));
    if (WasPreempted(*pod)) {
      if (preempted.empty()) preempted = StrCat(name, ": ", PreemptionMessage(*pod));
      fresh = fresh || !last.Stopped(PodAge::Of(*pod));
    } else if (WasDisrupted(*pod)) {
      if (disrupted.empty()) disrupted = StrCat(name, ": ", PreemptionMessage(*pod));
    } else if (Phase(*pod) == "Failed") {
      failed = failed || !api::IsDeleting(*pod);
      failed_old = failed_old || last.Stopped(PodAge::Of(*pod));
    } else if (!api::IsDeleting(*pod)) {
      lost_node = lost_node || OnLostNode(*pod);
      // Only the gang counts: members in groups of their own cannot train without it.
      const bool of_gang = !pass.spec.tiered() || api::Label(*pod, keys::kPodGroup) == pass.name;
      if (of_gang && api::IsBound(*pod)) ++staying;
    }
  }
  auto vanished = vanished_.find(std::string(api::Uid(*pass.job)));
  if (vanished != vanished_.end()) {
    if (preempted.empty()) preempted = vanished->second.message;
    newest = std::max(newest, vanished->second.age.created);
    fresh = fresh || !last.Stopped(vanished->second.age);
    pass.vanished_seen = true;
  }
  if (disrupted.empty() && failed && lost_node) disrupted = "a node of the job is lost";
  if (preempted.empty() && disrupted.empty() && !failed_old) return false;
  if (pass.spec.elastic && staying >= pass.spec.min_available.value_or(1) && !failed_old &&
      pass.KeepsVitalMembers()) {
    return false;
  }
  if (!preempted.empty() || failed_old) {
    // A clock behind the server's must not make what is known now look new for ever.
    pass.now = std::max(pass.now, newest);
    // What is known already and has no pods left to stop is over: new pods may come.
    if (!fresh && last.known() && pass.pods.empty()) return false;
    DecidePreempted(pass, preempted, fresh && last.known());
    return true;
  }
  if (!pass.IsTrue("Restarting")) {
    std::string message =
        StrCat(kind_->kind(), " ", pass.name, " is restarting because of ", disrupted);
    SetRestarting(pass, kind_->Reason("Restarting"), message);
    pass.AddEvent("Warning", kind_->Reason("Restarting"), message);
  }
  StopPods(pass, Which::kAll);
  return true;
}

void JobController::DecidePreempted(Pass& pass, const std::string& message, bool again) {
  if (pass.spec.on_preemption == OnPreemption::kFail) {
    return Finish(pass, "Failed", "Preempted",
                  StrCat(kind_->kind(), " ", pass.name, " failed because ", message,
                         "; with on-preemption Requeue it would wait and resume"));
  }
  if (again) SetCondition(pass, "Preempted", false, "Preempted", message);
  if (!pass.IsTrue("Preempted")) {
    SetCondition(pass, "Preempted", true, "Preempted", message);
    json::Set(pass.status, {"preemptions"}, json::GetInt(pass.status, {"preemptions"}) + 1);
    if (pass.IsTrue("Running")) SetCondition(pass, "Running", false, "Preempted", message);
    pass.AddEvent("Normal", "Preempted", message);
  }
  // The gang goes whole, its finished members too: all start again together from the checkpoint.
  StopPods(pass, Which::kAll);
}

// Kubeflow's two counts: containers restarted in place reach the limit, pods made anew pass it.
bool JobController::ExceedsBackoff(const Pass& pass, int64_t in_place_restarts) const {
  if (!pass.spec.backoff_limit) return false;
  int64_t limit = *pass.spec.backoff_limit;
  return pass.restarts + in_place_restarts > limit ||
         (in_place_restarts > 0 && in_place_restarts >= limit);
}

JobController::Judgement JobController::JudgeFailure(const Pass& pass,
                                                     size_t role,
                                                     const json::Value& pod) const {
  const ReplicaSpec& replica = pass.spec.replicas[role];
  const OnFailure verdict = kind_->ClassifyFailure(replica, pass.counts[role], pod, pass.restarts);
  const auto failure = api::FailureOf(pod, pass.now);
  const bool by_code = replica.restart_policy == RestartPolicy::kExitCode;
  const bool spared =
      replica.restart_policy != RestartPolicy::kNever && failure && IsSpared(pass, *failure);
  // Its exit code tells of another member's end.
  const bool lost_peer = by_code && failure && failure->which == api::FailureClass::kPeerLost;
  const bool by_cluster = FailedByCluster(pod) || WasDisrupted(pod);
  const bool by_kind = verdict != OnFailure::kAsUsual && verdict != OnFailure::kFailJob;
  return {.verdict = verdict,
          .retryable = spared || lost_peer || by_cluster || by_kind || api::IsDeleting(pod) ||
                       (by_code && ExitCode(pod).value_or(1) >= 128),
          // Only failures of its own are held against the job, and each once.
          .charged = verdict != OnFailure::kReplaceFree && !by_cluster &&
                     !counted_.contains(std::string(api::Uid(pod)))};
}

// Failures that are the job's own. True when the job is over.
bool JobController::DecideFailures(Pass& pass) {
  if (DecideHopeless(pass)) return true;
  bool restarting = false;
  bool restart_all = false;
  for (size_t i = 0; i < pass.spec.replicas.size(); ++i) {
    const ReplicaSpec& replica = pass.spec.replicas[i];
    for (int64_t k = 0; k < replica.replicas; ++k) {
      auto it = pass.pods.find(replica.PodName(pass.name, k));
      if (it == pass.pods.end()) continue;
      const json::Value& pod = *it->second;
      if (Phase(pod) != "Failed") continue;
      // A member that gave its place away is missed by nobody: the others train on.
      if (pass.spec.elastic && WasDisrupted(pod)) {
        if (!api::IsDeleting(pod)) pass.delete_pods.push_back(it->second);
        continue;
      }
      const Judgement judged = JudgeFailure(pass, i, pod);
      if (judged.verdict == OnFailure::kIgnore) continue;
      restart_all = restart_all || judged.verdict == OnFailure::kRestartJob;
      if (!judged.retryable) {
        Finish(pass, "Failed", kind_->Reason("Failed"),
               StrCat(kind_->kind(), " ", pass.name, " failed because ", pass.counts[i].failed, " ",
                      replica.type, " replica(s) failed.", FailureText(pass)));
        return true;
      }
      restarting = true;
      if (api::IsDeleting(pod)) continue;
      pass.delete_pods.push_back(it->second);
      if (judged.charged) ChargeFailure(pass, replica, pod);
    }
  }
  if (ExceedsBackoff(pass, InPlaceRestarts(pass))) return EndAtBackoffLimit(pass);
  if (kind_->Failed(pass.spec, pass.counts)) {
    Finish(pass, "Failed", kind_->Reason("Failed"),
           StrCat(kind_->kind(), " ", pass.name, " failed because too few members succeeded.",
                  FailureText(pass)));
    return true;
  }
  if (restarting) SayRestarting(pass);
  if (!restart_all) {
    RaiseMemoryInPlace(pass, /*running_too=*/false);
    LeaveHardwareInPlace(pass);
    return false;
  }
  pass.delete_pods.clear();
  StopPods(pass, Which::kAll);
  return true;
}

bool JobController::EndAtBackoffLimit(Pass& pass) {
  // What lacked memory gets more before its last start counts.
  if (!ExceedsBackoff(pass, 0) && RaiseMemoryInPlace(pass, /*running_too=*/true)) return false;
  pass.delete_pods.clear();
  Finish(
      pass, "Failed", "BackoffLimitExceeded",
      StrCat(kind_->kind(), " ", pass.name,
             " has failed because it has reached the specified backoff limit.", FailureText(pass)));
  return true;
}

void JobController::SayRestarting(Pass& pass) {
  if (pass.IsTrue("Restarting")) return;
  const std::string message =
      StrCat(kind_->kind(), " ", pass.name, " is restarting.", FailureText(pass));
  SetRestarting(pass, kind_->Reason("Restarting"), message);
  pass.AddEvent("Warning", kind_->Reason("Restarting"), message);
}

void JobController::SetRestarting(Pass& pass, std::string_view reason, std::string_view message) {
  SetCondition(pass, "Restarting", true, reason, message);
  if (pass.IsTrue("Running")) SetCondition(pass, "Running", false, reason, message);
}

bool JobController::StoppedBySuspension(const Pass& pass) const {
  const auto running = api::FindConditionIn(pass.status, "Running");
  return running && running->reason == kind_->Reason("Suspended");
}

void JobController::DecideRunning(Pass& pass) {
  if (!kind_->Running(pass.spec, pass.counts) || pass.IsTrue("Running")) return;
  std::string message = StrCat(kind_->kind(), " ", pass.name, " is running.");
  const bool preempted = pass.IsTrue("Preempted");
  if (preempted) {
    SetCondition(pass, "Preempted", false, "Resumed",
                 StrCat(kind_->kind(), " ", pass.name, " runs again."));
  }
  if (preempted || StoppedBySuspension(pass)) {
    int64_t running = 0;
    for (const ReplicaCount& count : pass.counts) running += count.running;
    pass.AddEvent("Normal", "Resumed",
                  StrCat(kind_->kind(), " ", pass.name, " runs again; so far ", running, " of its ",
                         pass.spec.TotalReplicas(), " pods run."));
  }
  if (pass.IsTrue("Restarting")) {
    SetCondition(pass, "Restarting", false, kind_->Reason("Running"), message);
  }
  SetCondition(pass, "Running", true, kind_->Reason("Running"), message);
  if (kind_->kubedl_style_status()) {
    json::Array& conditions = json::FindMutable(pass.status, {"conditions"})->get_array();
    auto created = std::find_if(conditions.begin(), conditions.end(), [](const json::Value& one) {
      return json::GetString(one, {"type"}) == "Created";
    });
    if (created != conditions.end()) conditions.erase(created);
  }
  pass.AddEvent("Normal", kind_->Reason("Running"), message);
}

// A member that would start when others have finished already would wait for them for ever.
bool JobController::EndsElastically(const Pass& pass) {
  if (!pass.spec.elastic || !pass.spec.grouped) return false;
  return std::any_of(pass.counts.begin(), pass.counts.end(),
                     [](const ReplicaCount& count) { return count.succeeded > 0; });
}

// Members that have nobody left to train with: they were not placed, wait to join, or run on long
// after the first member, where all others meet, has finished.
void JobController::StopStragglers(Pass& pass) {
  auto leader = pass.pods.find(pass.spec.replicas.front().PodName(pass.name, 0));
  std::optional<WallTime> finished;
  if (leader != pass.pods.end() && Phase(*leader->second) == "Succeeded") {
    for (const api::ContainerStatus& container : api::ContainerStatuses(*leader->second)) {
      finished = container.finished_at;
    }
  }
  for (const auto& [name, pod] : pass.pods) {
    if (HasEnded(*pod) || api::IsDeleting(*pod)) continue;
    bool late = Phase(*pod) == "Pending" || ReportedWorld(*pod) == 0;
    if (!late && finished) {
      Duration left = *finished + kElasticDrainTimeout - pass.now;
      late = left.count() <= 0;
      if (!late) pass.RequeueAfter(left);
    }
    if (late) pass.delete_pods.push_back(pod);
  }
}

bool JobController::IsExpected(Pass& pass, const std::string& pod) {
  const std::string token = StrCat(api::Uid(*pass.job), "/", pod);
  const auto added = expected_.AddedAt(token);
  if (!added) return false;
  const Duration left = *added + kWatchLag - context_.clock.Steady();
  if (left <= Duration::zero()) {
    expected_.Seen(token);
    return false;
  }
  pass.RequeueAfter(left);
  return true;
}

JobParts JobController::PartsOf(const Pass& pass) const {
  return {*kind_, *pass.job, pass.spec, pass.gang_class};
}

void JobController::WantPods(Pass& pass) {
  if (EndsElastically(pass)) return StopStragglers(pass);
  const std::string held_until = HoldPreemption(pass);
  // After a stop the new pods wait until the last old one is gone, so that they start even.
  bool old_ones = !pass.spec.elastic && !pass.IsTrue("Running") &&
                  std::any_of(pass.pods.begin(), pass.pods.end(),
                              [](const auto& named) { return api::IsDeleting(*named.second); });
  if (old_ones) return;
  const bool all = !pass.spec.tiered() || pass.GangPlaced();
  for (const ReplicaSpec& replica : pass.spec.replicas) {
    for (int64_t k = 0; k < replica.replicas; ++k) {
      const std::string pod = replica.PodName(pass.name, k);
      if (pass.pods.contains(pod) || IsExpected(pass, pod)) continue;
      // Before its gang has its place, a member of another class would hold one to no use.
      if (!all && pass.GroupOf(replica, k) != pass.name) continue;
      json::Value member = MakeMember(PartsOf(pass), replica, k);
      if (!held_until.empty()) {
        json::Set(member, {"metadata", "annotations", keys::kPreemptsFrom}, held_until);
      }
      pass.create_pods.push_back(std::move(member));
    }
  }
  for (const auto& [name, pod] : pass.pods) {
    if (!pass.Wants(name) && !api::IsDeleting(*pod)) pass.delete_pods.push_back(pod);
  }
  pass.want_group = true;
}

void JobController::SetCondition(Pass& pass,
                                 std::string_view type,
                                 bool status,
                                 std::string_view reason,
                                 std::string_view message) {
  json::Array& conditions = json::FindMutable(pass.status, {"conditions"})->get_array();
  if (!api::SetCondition(conditions, type, status ? "True" : "False", reason, message, pass.now)) {
    return;
  }
  // Kubeflow's conditions carry the time of the last update too, and the newest stands last.
  for (size_t i = 0; i < conditions.size(); ++i) {
    if (json::GetString(conditions[i], {"type"}) != type) continue;
    json::Value changed = conditions[i];
    json::Set(changed, {"lastUpdateTime"}, api::FormatTime(pass.now));
    conditions.erase(conditions.begin() + static_cast<std::ptrdiff_t>(i));
    conditions.push_back(std::move(changed));
    return;
  }
}

std::string_view JobController::PhaseWord(const Pass& pass) {
  for (std::string_view word :
       {"Succeeded", "Failed", "Suspended", "Preempted", "Restarting", "Running"}) {
    if (!pass.IsTrue(word)) continue;
    if (word != "Running") return word;
    if (pass.IsTrue("Degraded")) return "Degraded";
    return pass.IsTrue("Hung") ? "Hung" : word;
  }
  return "Pending";
}

void JobController::FillCounts(Pass& pass) {
  if (kind_->has_phase()) json::Set(pass.status, {"phase"}, PhaseWord(pass));
  if (!pass.valid) return;
  json::Object statuses;
  for (size_t i = 0; i < pass.spec.replicas.size(); ++i) {
    const ReplicaCount& count = pass.counts[i];
    json::Object one;
    if (count.active > 0) one["active"] = count.active;
    if (count.succeeded > 0) one["succeeded"] = count.succeeded;
    if (count.failed > 0) one["failed"] = count.failed;
    // Which pods a HorizontalPodAutoscaler looks at.
    if (!kind_->kubedl_style_status()) {
      const bool one_group = pass.spec.grouped && !pass.spec.tiered();
      one["selector"] = StrCat(one_group ? keys::kPodGroup : keys::kJobName, "=", pass.name, ",",
                               one_group ? keys::kPodSet : keys::kJobRole, "=",
                               ToLower(pass.spec.replicas[i].type));
    }
    statuses[pass.spec.replicas[i].type] = std::move(one);
  }
  json::Set(pass.status, {"replicaStatuses"}, std::move(statuses));
  if (pass.restarts > 0) json::Set(pass.status, {"restarts"}, pass.restarts);
  if (pass.spec.elastic) FillSize(pass);
  kind_->FillStatus(*pass.job, pass.spec, pass.counts, pass.now, pass.status);
}

}  // namespace swell::controllers
