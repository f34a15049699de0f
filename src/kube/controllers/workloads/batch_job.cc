#include "kube/controllers/workloads/batch_job.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/strings.h"
#include "json/patch.h"
#include "json/texts.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/failure.h"
#include "kube/controllers/pod_env.h"
#include "kube/controllers/pod_facts.h"
#include "kube/controllers/queue.h"
#include "kube/controllers/workloads/batch_rules.h"
#include "kube/controllers/write_batch.h"

namespace swell::controllers {
namespace {

constexpr std::string_view kComponent = "job-controller";
constexpr std::string_view kTracking = "batch.kubernetes.io/job-tracking";
constexpr std::string_view kIndexKey = "batch.kubernetes.io/job-completion-index";
// How many pods of its index have failed before it.
constexpr std::string_view kFailureCountKey = "batch.kubernetes.io/job-index-failure-count";
constexpr int64_t kPodsPerPassMax = 500;

bool IsTracked(const json::Value& pod) {
  const json::Array& finalizers = json::GetArray(pod, {"metadata", "finalizers"});
  return std::find(finalizers.begin(), finalizers.end(), json::Value(kTracking)) !=
         finalizers.end();
}

std::set<std::string> Uids(const json::Value& status, std::string_view list) {
  std::set<std::string> out;
  for (const json::Value& uid : json::GetArray(status, {"uncountedTerminatedPods", list})) {
    if (uid.is_string()) out.emplace(json::View(uid.get_string()));
  }
  return out;
}

std::optional<int64_t> OptionalInt(const json::Value& object, json::Path path) {
  const json::Value* found = json::Find(object, path);
  if (found == nullptr || !found->is_number()) return std::nullopt;
  return json::GetInt(object, path);
}

// Going, and may still do something on its node.
bool IsLeaving(const json::Value& pod) {
  return api::IsDeleting(pod) && !HasEnded(pod) && api::IsBound(pod) &&
         json::GetInt(pod, {"metadata", "deletionGracePeriodSeconds"}) > 0;
}

}  // namespace

struct BatchJobController::Pass {
  std::string ns, name, uid;
  json::SharedValue job;
  json::SharedValue group;  // of its pods; null: they have none
  WallTime now;
  int64_t parallelism = 1;
  std::optional<int64_t> completions;
  int64_t backoff_limit = 6;
  bool indexed = false;
  bool suspend = false;
  std::optional<int64_t> limit_per_index, failed_indexes_max;
  bool replace_only_failed = false;

  std::vector<json::SharedValue> live;     // tracked, neither over nor going
  std::vector<json::SharedValue> release;  // counted (or not to be): the finalizer may go
  std::set<std::string> names;             // of all its pods
  std::map<int64_t, int> live_indexes;
  std::set<int64_t> completed, failed_indexes;
  // The pod of an index that failed last, where each index has a limit. It is held until another
  // carries its count on, or somebody could delete what is known of the index.
  struct IndexFailure {
    json::SharedValue pod;
    int64_t count = 0;
    bool counts = false, fails_index = false;
  };
  std::map<int64_t, IndexFailure> index_failures;
  int64_t leaving = 0;  // whose places are theirs until they are gone
  std::set<std::string> uncounted_succeeded, uncounted_failed;
  int64_t succeeded = 0, failed = 0;  // counted
  int64_t ready = 0, terminating = 0;
  WallTime last_failure;
  std::string fail_job_because;

  json::Value status;
  std::vector<json::SharedValue> stop;
  std::vector<json::Value> create;
  bool delete_job = false;
  struct Event {
    std::string type, reason, message;
  };
  std::vector<Event> events;
  Duration requeue_after{0};

  int64_t Succeeded() const {
    return indexed ? static_cast<int64_t>(completed.size())
                   : succeeded + static_cast<int64_t>(uncounted_succeeded.size());
  }
  int64_t Failed() const { return failed + static_cast<int64_t>(uncounted_failed.size()); }
  bool Over() const {
    return api::ConditionIsTrueIn(status, "Complete") || api::ConditionIsTrueIn(status, "Failed");
  }
  bool AllCounted() const { return uncounted_succeeded.empty() && uncounted_failed.empty(); }
  void RequeueAfter(Duration delay) {
    if (requeue_after.count() == 0 || delay < requeue_after) requeue_after = delay;
  }
  void Set(std::string_view type, bool value, std::string_view reason, std::string_view message) {
    json::Array conditions = json::GetArray(status, {"conditions"});
    api::SetCondition(conditions, type, value ? "True" : "False", reason, message, now);
    json::Set(status, {"conditions"}, std::move(conditions));
  }
};

BatchJobController::BatchJobController(Context context)
    : context_(context),
      jobs_(context_.informers.Of(client::resources::kJobs)),
      pods_(context_.informers.Of(client::resources::kPods)),
      events_(MakeRecorder(context_, std::string(kComponent))),
      queue_(MakeQueue(context_, "jobs", 64, this, &BatchJobController::Reconcile)),
      orphans_(MakeQueue(context_, "job-orphans", 16, this, &BatchJobController::ReconcileOrphan)),
      client_(context_.executor, context_.server, context_.user, std::string(kComponent)),
      adoption_(context_, client_, std::string(kTracking)),
      queued_(context_, client::resources::kJobs, "suspend", std::string(kComponent)),
      gangs_(context_, client_, events_, queue_) {
  Follow(jobs_, Queued(queue_));
  auto pod = [this](const json::SharedValue& it) { OnPod(*it); };
  pods_.AddHandlers({.on_add = pod,
                     .on_update =
                         [this](const json::SharedValue& before, const json::SharedValue& it) {
                           if (!api::ControllerOf(*it)) OnPod(*before);
                           OnPod(*it);
                         },
                     .on_delete = pod});
}

void BatchJobController::OnPod(const json::Value& pod) {
  auto owner = api::ControllerOf(pod);
  if (owner && owner->kind == "Job" && owner->api_version.starts_with("batch/")) {
    queue_.Add(StrCat(api::Namespace(pod), "/", owner->name));
  }
  if (!owner) {
    for (const std::string& job : adoption_.JobsFor(pod)) queue_.Add(job);
  }
  if (IsTracked(pod)) orphans_.Add(api::KeyOf(pod));
}

// A pod that no job will count any more must not be held.
void BatchJobController::ReconcileOrphan(const std::string& key, Done done) {
  json::SharedValue pod = pods_.Get(key);
  if (!pod || !IsTracked(*pod)) return done(Duration::zero());
  auto owner = api::ControllerOf(*pod);
  json::SharedValue job =
      owner ? jobs_.Get(StrCat(api::Namespace(*pod), "/", owner->name)) : nullptr;
  bool orphan = !job || api::Uid(*job) != owner->uid;
  if (!orphan || (owner && !HasEnded(*pod) && !api::IsDeleting(*pod))) {
    return done(Duration::zero());
  }
  // A job may be adopting it.
  if (!owner) return Release(*pod, Ends(std::move(done)), true);
  // The watch of jobs may be behind that of pods, as a new leader's: what is let go uncounted then
  // would be run again.
  client_.Get(client::resources::kJobs, api::Namespace(*pod), owner->name,
              [this, pod, uid = owner->uid, done](const Result<json::SharedValue>& known) {
                const bool gone = known.ok() ? api::Uid(**known) != uid
                                             : known.status().code() == Code::kNotFound;
                if (gone) return Release(*pod, Ends(done));
                done(Outcome(known.status()));
              });
}

void BatchJobController::Reconcile(const std::string& key, Done done) {
  json::SharedValue job = jobs_.Get(key);
  if (!job) return done(Duration::zero());
  std::string_view manager = json::GetString(*job, {"spec", "managedBy"});
  if (!manager.empty() && manager != "kubernetes.io/job-controller") return done(Duration::zero());
  if (adoption_.AdoptAndRelease(*job, done)) return;
  auto pass = std::make_shared<Pass>();
  pass->job = job;
  pass->ns = api::Namespace(*job);
  pass->name = api::Name(*job);
  pass->uid = api::Uid(*job);
  pass->now = context_.clock.Now();
  if (api::IsDeleting(*job)) return Work(pass, std::move(done));
  gangs_.Ensure(job, IsFresh(*job), done, [this, pass, done](const json::SharedValue& group) {
    pass->group = group;
    Work(pass, done);
  });
}

// Whether the job has never started.
bool BatchJobController::IsFresh(const json::Value& job) const {
  return pods_.ByIndex("owner", api::Uid(job)).empty() &&
         json::Find(job, {"status", "startTime"}) == nullptr &&
         json::GetInt(job, {"status", "succeeded"}) == 0 &&
         json::GetInt(job, {"status", "failed"}) == 0 && !api::FindCondition(job, "Suspended");
}

void BatchJobController::Work(const std::shared_ptr<Pass>& pass, Done done) {
  Observe(*pass);
  Count(*pass);
  if (api::IsDeleting(*pass->job)) {
    // Its pods are the garbage collector's; what ended is let go.
    return WriteRest(pass, std::move(done));
  }
  Decide(*pass);
  FillCounts(*pass);
  Write(pass, std::move(done));
}

void BatchJobController::Observe(Pass& pass) {
  const json::Value& job = *pass.job;
  pass.parallelism =
      std::clamp<int64_t>(json::GetInt(job, {"spec", "parallelism"}, 1), 0, kCompletionsMax);
  pass.completions = OptionalInt(job, {"spec", "completions"});
  if (pass.completions) {
    pass.completions = std::clamp<int64_t>(*pass.completions, 0, kCompletionsMax);
  }
  pass.backoff_limit = json::GetInt(job, {"spec", "backoffLimit"}, 6);
  pass.indexed = json::GetString(job, {"spec", "completionMode"}) == "Indexed";
  pass.suspend = json::GetBool(job, {"spec", "suspend"});
  if (pass.indexed) {
    pass.limit_per_index = OptionalInt(job, {"spec", "backoffLimitPerIndex"});
    pass.failed_indexes_max = OptionalInt(job, {"spec", "maxFailedIndexes"});
  }
  pass.replace_only_failed = json::GetString(job, {"spec", "podReplacementPolicy"}) == "Failed";
  const json::Value* status = json::Find(job, {"status"});
  pass.status = status && status->is_object() ? *status : json::Value(json::Object{});
  pass.succeeded = json::GetInt(pass.status, {"succeeded"});
  pass.failed = json::GetInt(pass.status, {"failed"});
  pass.uncounted_succeeded = Uids(pass.status, "succeeded");
  pass.uncounted_failed = Uids(pass.status, "failed");
  if (pass.indexed) {
    int64_t completions = pass.completions.value_or(0);
    pass.completed = ParseIndexes(json::GetString(pass.status, {"completedIndexes"}), completions);
    pass.failed_indexes =
        ParseIndexes(json::GetString(pass.status, {"failedIndexes"}), completions);
  }
}

// Takes what ended into the books, each pod once.
void BatchJobController::Count(Pass& pass) {
  std::set<std::string> held;  // uids of tracked pods
  for (const json::SharedValue& shared : pods_.ByIndex("owner", pass.uid)) {
    const json::Value& pod = *shared;
    std::string uid(api::Uid(pod));
    pass.names.emplace(api::Name(pod));
    bool deleting = api::IsDeleting(pod);
    if (deleting && !HasEnded(pod)) ++pass.terminating;
    if (!IsTracked(pod)) continue;
    held.insert(uid);
    // Booked as it was stopped with its failed job, and succeeded all the same.
    if (Phase(pod) == "Succeeded") pass.uncounted_failed.erase(uid);
    bool booked = pass.uncounted_succeeded.contains(uid) || pass.uncounted_failed.contains(uid);
    if (booked && !HasEnded(pod) && !deleting) {
      pass.live.push_back(shared);  // is still to be stopped
      continue;
    }
    if (booked) {
      pass.release.push_back(shared);
      continue;
    }
    int64_t index = CompletionIndex(pod);
    if (Phase(pod) == "Succeeded") {
      pass.release.push_back(shared);
      if (!pass.indexed) {
        pass.uncounted_succeeded.insert(uid);
      } else if (index >= 0 && index < pass.completions.value_or(0)) {
        pass.completed.insert(index);
      }
      continue;
    }
    if (pass.replace_only_failed && IsLeaving(pod)) {
      ++pass.leaving;
      if (pass.indexed) ++pass.live_indexes[index];
      continue;
    }
    if (Phase(pod) != "Failed" && !deleting) {
      pass.live.push_back(shared);
      if (pass.indexed) ++pass.live_indexes[index];
      if (api::ConditionIsTrue(pod, "Ready")) ++pass.ready;
      continue;
    }
    CountFailure(pass, shared, index);
  }
  ResolveIndexes(pass);
  for (auto [list, counter] : {std::pair(&pass.uncounted_succeeded, &pass.succeeded),
                               std::pair(&pass.uncounted_failed, &pass.failed)}) {
    *counter += static_cast<int64_t>(
        std::erase_if(*list, [&held](const std::string& uid) { return !held.contains(uid); }));
  }
}

void BatchJobController::CountFailure(Pass& pass, const json::SharedValue& pod, int64_t index) {
  FailureVerdict verdict = ClassifyFailure(*pass.job, *pod);
  if (verdict.action == FailureAction::kFailJob) pass.fail_job_because = verdict.message;
  bool counts =
      verdict.action != FailureAction::kIgnore && !WasDisrupted(*pod) && !FailedByCluster(*pod);
  if (!pass.limit_per_index || index < 0) return Book(pass, pod, counts);
  int64_t before = ParseInt(api::Annotation(*pod, kFailureCountKey)).value_or(0);
  Pass::IndexFailure failure{pod, before + (counts ? 1 : 0), counts,
                             verdict.action == FailureAction::kFailIndex};
  Pass::IndexFailure& last = pass.index_failures[index];
  if (!last.pod || last.count < failure.count) std::swap(last, failure);
  if (failure.pod) Book(pass, failure.pod, failure.counts);
}

void BatchJobController::Book(Pass& pass, const json::SharedValue& pod, bool counts) {
  pass.release.push_back(pod);
  if (!counts) return;
  pass.uncounted_failed.emplace(api::Uid(*pod));
  pass.last_failure = std::max(pass.last_failure, EndTime(*pod));
}

void BatchJobController::ResolveIndexes(Pass& pass) {
  bool over = pass.Over() || api::IsDeleting(*pass.job) || !pass.fail_job_because.empty();
  std::erase_if(pass.index_failures, [&](const auto& entry) {
    const auto& [index, failure] = entry;
    bool failed = failure.fails_index || failure.count > *pass.limit_per_index;
    if (failed && !pass.completed.contains(index)) pass.failed_indexes.insert(index);
    bool held = !over && !pass.failed_indexes.contains(index) && !pass.completed.contains(index) &&
                !pass.live_indexes.contains(index);
    if (!held) Book(pass, failure.pod, failure.counts);
    return !held;
  });
}

void BatchJobController::Decide(Pass& pass) {
  if (pass.Over()) return DecideFinished(pass);
  if (pass.suspend && pass.fail_job_because.empty()) return DecideSuspended(pass);
  if (api::ConditionIsTrueIn(pass.status, "Suspended")) {
    pass.Set("Suspended", false, "JobResumed", "Job resumed");
    pass.events.push_back({"Normal", "Resumed", "Job resumed"});
    json::Remove(pass.status, {"startTime"});
  }
  if (!json::Find(pass.status, {"startTime"})) {
    json::Set(pass.status, {"startTime"}, api::FormatTime(pass.now));
  }
  if (DecideEnd(pass)) return;
  WantPods(pass);
}

// True when the job is over, or will be once all pods are counted.
bool BatchJobController::DecideEnd(Pass& pass) {
  auto fail = [&](std::string_view reason, std::string_view message) {
    if (pass.AllCounted()) Fail(pass, reason, message);
    return true;
  };
  if (!pass.fail_job_because.empty()) {
    // Nothing else remembers the pod once it is let go: say so now, counted or not.
    Fail(pass, "PodFailurePolicy", pass.fail_job_because);
    return true;
  }
  int64_t restarts = 0;
  if (json::GetString(*pass.job, {"spec", "template", "spec", "restartPolicy"}) == "OnFailure") {
    for (const json::SharedValue& pod : pass.live) restarts += RestartCount(*pod);
  }
  if (pass.Failed() > pass.backoff_limit ||
      (restarts > 0 && restarts >= std::max<int64_t>(1, pass.backoff_limit))) {
    auto failure = api::FirstFailure(pods_.ByIndex("owner", pass.uid), pass.now);
    // It does not start again any more, and its log goes with the pod.
    if (failure && failure->repeats()) {
      failure->waits.clear();
      failure->advice.clear();
    }
    return fail("BackoffLimitExceeded", StrCat("Job has reached the specified backoff limit",
                                               failure ? ". " + failure->Sentence() : ""));
  }
  if (json::Find(*pass.job, {"spec", "activeDeadlineSeconds"})) {
    WallTime start = api::ParseTime(json::GetString(pass.status, {"startTime"})).value_or(pass.now);
    auto deadline =
        std::chrono::seconds(json::GetInt(*pass.job, {"spec", "activeDeadlineSeconds"}));
    Duration left = start + deadline - pass.now;
    if (left.count() <= 0) {
      return fail("DeadlineExceeded", "Job was active longer than specified deadline");
    }
    pass.RequeueAfter(left);
  }
  auto failed_indexes = static_cast<int64_t>(pass.failed_indexes.size());
  if (pass.failed_indexes_max && failed_indexes > *pass.failed_indexes_max) {
    return fail("MaxFailedIndexesExceeded",
                "Job has exceeded the specified maximal number of failed indexes");
  }
  if (failed_indexes > 0 && failed_indexes + pass.Succeeded() >= *pass.completions) {
    return fail("FailedIndexes", "Job has failed indexes");
  }
  if (std::optional<size_t> rule = MatchSuccessPolicy(*pass.job, pass.completed)) {
    Complete(pass, "SuccessPolicy", StrCat("Matched rules at index ", *rule));
    return true;
  }
  bool complete = pass.completions ? pass.Succeeded() >= *pass.completions
                                   : pass.Succeeded() > 0 && pass.live.empty();
  if (!complete) return false;
  if (pass.AllCounted()) {
    Complete(pass, "CompletionsReached", "Reached expected number of succeeded pods");
  } else {
    pass.stop = pass.live;
  }
  return true;
}

void BatchJobController::Complete(Pass& pass, std::string_view reason, std::string_view message) {
  pass.Set("SuccessCriteriaMet", true, reason, message);
  pass.Set("Complete", true, reason, message);
  json::Set(pass.status, {"completionTime"}, api::FormatTime(pass.now));
  pass.events.push_back({"Normal", "Completed", "Job completed"});
  DecideFinished(pass);
}

void BatchJobController::Fail(Pass& pass, std::string_view reason, std::string_view message) {
  pass.Set("FailureTarget", true, reason, message);
  pass.Set("Failed", true, reason, message);
  // What still runs fails with its job, and once: it may end by itself before it is stopped.
  for (const json::SharedValue& pod : pass.live) pass.uncounted_failed.emplace(api::Uid(*pod));
  pass.events.push_back({"Warning", std::string(reason), std::string(message)});
  DecideFinished(pass);
}

void BatchJobController::DecideFinished(Pass& pass) {
  pass.stop = pass.live;
  if (!json::Find(*pass.job, {"spec", "ttlSecondsAfterFinished"})) return;
  auto ttl = std::chrono::seconds(json::GetInt(*pass.job, {"spec", "ttlSecondsAfterFinished"}));
  WallTime end = pass.now;
  for (const json::Value& condition : json::GetArray(pass.status, {"conditions"})) {
    std::string_view type = json::GetString(condition, {"type"});
    if (type != "Complete" && type != "Failed") continue;
    end = api::ParseTime(json::GetString(condition, {"lastTransitionTime"})).value_or(end);
  }
  Duration left = end + ttl - pass.now;
  if (left.count() > 0) {
    pass.RequeueAfter(left);
  } else {
    pass.delete_job = true;
  }
}

void BatchJobController::DecideSuspended(Pass& pass) {
  pass.stop = pass.live;
  if (!api::ConditionIsTrueIn(pass.status, "Suspended")) {
    pass.Set("Suspended", true, "JobSuspended", "Job suspended");
    pass.events.push_back({"Normal", "Suspended", "Job suspended"});
  }
  json::Remove(pass.status, {"startTime"});
}

void BatchJobController::WantPods(Pass& pass) {
  auto active = static_cast<int64_t>(pass.live.size());
  int64_t wanted = pass.parallelism;
  if (pass.completions) {
    auto failed_indexes = static_cast<int64_t>(pass.failed_indexes.size());
    wanted = std::min(wanted, *pass.completions - pass.Succeeded() - failed_indexes);
  }
  wanted = std::max<int64_t>(0, wanted - pass.leaving);
  if (!pass.completions && pass.Succeeded() > 0) wanted = std::min(wanted, active);
  if (active > wanted) {
    // The least far first: not placed, then not ready, then the youngest.
    std::stable_sort(pass.live.begin(), pass.live.end(), [](const auto& a, const auto& b) {
      auto rank = [](const json::Value& pod) {
        return std::tuple(api::IsBound(pod), api::ConditionIsTrue(pod, "Ready"),
                          -api::CreationTime(pod).unix_ns);
      };
      return rank(*a) < rank(*b);
    });
    pass.stop.assign(pass.live.begin(), pass.live.begin() + (active - wanted));
    return;
  }
  if (active == wanted || MustWait(pass)) return;
  int64_t missing = std::min(wanted - active, kPodsPerPassMax);
  if (missing < wanted - active) pass.RequeueAfter(std::chrono::milliseconds(10));
  int64_t index = -1;
  uint64_t number = 0;
  while (missing > 0) {
    std::string prefix = pass.name;
    if (pass.indexed) {
      do {
        ++index;
      } while (!IsDue(pass, index));
      if (index >= pass.completions.value_or(0)) return;
      prefix += StrCat("-", index);
      number = 0;
    }
    // A pod that the job has let go keeps its name.
    std::string name;
    do {
      Random suffix(StableHash(StrCat(pass.uid, "/", index, "/", number++)));
      name = StrCat(prefix, "-", suffix.NameSuffix(5));
    } while (!pass.names.insert(name).second || pods_.Get(StrCat(pass.ns, "/", name)));
    pass.create.push_back(MakePod(pass, name, index));
    --missing;
  }
}

// Whether that index needs a pod now. One that is out of range does: there the search ends.
bool BatchJobController::IsDue(Pass& pass, int64_t index) {
  if (pass.completed.contains(index) || pass.failed_indexes.contains(index) ||
      pass.live_indexes.contains(index)) {
    return false;
  }
  auto failure = pass.index_failures.find(index);
  if (failure == pass.index_failures.end()) return true;
  const auto& [pod, count, counts, fails_index] = failure->second;
  Duration wait = EndTime(*pod) + BackoffAfter(count) - pass.now;
  if (wait.count() <= 0) return true;
  pass.RequeueAfter(wait);
  return false;
}

// Failures keep the whole job waiting, where its indexes have no limits of their own.
bool BatchJobController::MustWait(Pass& pass) {
  if (pass.limit_per_index) return false;
  if (pass.last_failure.unix_ns == 0 && pass.Failed() > 0) {
    for (const json::SharedValue& pod : pods_.ByIndex("owner", pass.uid)) {
      if (Phase(*pod) == "Failed") pass.last_failure = std::max(pass.last_failure, EndTime(*pod));
    }
  }
  Duration wait = pass.last_failure + BackoffAfter(pass.Failed()) - pass.now;
  if (pass.last_failure.unix_ns == 0 || wait.count() <= 0) return false;
  pass.RequeueAfter(wait);
  return true;
}

void BatchJobController::FillCounts(Pass& pass) {
  auto put = [&pass](std::string_view field, int64_t value, bool always) {
    if (value > 0 || always) {
      json::Set(pass.status, {field}, value);
    } else {
      json::Remove(pass.status, {field});
    }
  };
  bool stopping = pass.Over() || pass.suspend;
  put("active", stopping ? 0 : static_cast<int64_t>(pass.live.size() + pass.create.size()), false);
  put("ready", stopping ? 0 : pass.ready, true);
  put("terminating", pass.terminating, true);
  if (pass.indexed) {
    pass.succeeded = static_cast<int64_t>(pass.completed.size());
    json::Set(pass.status, {"completedIndexes"}, FormatIndexes(pass.completed));
    if (pass.completed.empty()) json::Remove(pass.status, {"completedIndexes"});
    if (pass.limit_per_index) {
      json::Set(pass.status, {"failedIndexes"}, FormatIndexes(pass.failed_indexes));
    }
  }
  put("succeeded", pass.succeeded, false);
  put("failed", pass.failed, false);
  json::Object uncounted;
  if (!pass.uncounted_succeeded.empty())
    uncounted["succeeded"] = json::TextArray(pass.uncounted_succeeded);
  if (!pass.uncounted_failed.empty()) uncounted["failed"] = json::TextArray(pass.uncounted_failed);
  json::Set(pass.status, {"uncountedTerminatedPods"}, std::move(uncounted));
}

json::Value BatchJobController::MakePod(const Pass& pass,
                                        const std::string& name,
                                        int64_t index) const {
  const json::Value* pod_template = json::Find(*pass.job, {"spec", "template"});
  json::Value pod = pod_template ? *pod_template : json::Value(json::Object{});
  json::Set(pod, {"apiVersion"}, "v1");
  json::Set(pod, {"kind"}, "Pod");
  json::Set(pod, {"metadata", "name"}, name);
  json::Set(pod, {"metadata", "generateName"}, StrCat(pass.name, "-"));
  json::Set(pod, {"metadata", "namespace"}, pass.ns);
  json::Set(pod, {"metadata", "ownerReferences"}, json::Array{api::MakeOwnerReference(*pass.job)});
  json::Set(pod, {"metadata", "finalizers"}, json::Array{json::Value(kTracking)});
  for (std::string_view key : {"batch.kubernetes.io/controller-uid", "controller-uid"}) {
    json::Set(pod, {"metadata", "labels", key}, pass.uid);
  }
  for (std::string_view key : {"batch.kubernetes.io/job-name", "job-name"}) {
    json::Set(pod, {"metadata", "labels", key}, pass.name);
  }
  if (pass.group) JoinGroup(pod, *pass.group);
  if (!pass.indexed) return pod;
  std::string text = std::to_string(index);
  json::Set(pod, {"metadata", "annotations", kIndexKey}, text);
  json::Set(pod, {"metadata", "labels", kIndexKey}, text);
  if (pass.limit_per_index) {
    auto failure = pass.index_failures.find(index);
    int64_t failures = failure == pass.index_failures.end() ? 0 : failure->second.count;
    json::Set(pod, {"metadata", "annotations", kFailureCountKey}, std::to_string(failures));
  }
  if (!json::Find(pod, {"spec", "hostname"})) {
    json::Set(pod, {"spec", "hostname"}, StrCat(pass.name, "-", index));
  }
  SetEnv(pod, "JOB_COMPLETION_INDEX", text);
  return pod;
}

// The books first, then what they allow.
void BatchJobController::Write(const std::shared_ptr<Pass>& pass, Done done) {
  const json::Value* before = json::Find(*pass->job, {"status"});
  json::Value patch =
      json::MakeMergePatch(before ? *before : json::Value(json::Object{}), pass->status);
  if (pass->delete_job || patch.get_object().empty()) return WriteRest(pass, std::move(done));
  json::Value document = json::Object{
      {"metadata", json::Object{{"resourceVersion",
                                 json::GetString(*pass->job, {"metadata", "resourceVersion"})}}},
      {"status", std::move(patch)}};
  client_.Patch(
      client::resources::kJobs, pass->ns, pass->name, client::PatchType::kMerge, document,
      [this, pass, done](const Result<json::SharedValue>& result) {
        if (result.ok()) return WriteRest(pass, done);
        done(Outcome(result.status()));
      },
      "status");
}

void BatchJobController::Release(const json::Value& pod,
                                 client::ObjectCallback done,
                                 bool as_known) {
  json::Array kept;
  for (const json::Value& finalizer : json::GetArray(pod, {"metadata", "finalizers"})) {
    if (finalizer != json::Value(kTracking)) kept.push_back(finalizer);
  }
  json::Value patch = json::Object{
      {"metadata", json::Object{{"uid", api::Uid(pod)}, {"finalizers", std::move(kept)}}}};
  if (as_known) {
    json::Set(patch, {"metadata", "resourceVersion"}, api::ResourceVersionText(pod));
  }
  client_.Patch(client::resources::kPods, api::Namespace(pod), api::Name(pod),
                client::PatchType::kMerge, patch, std::move(done));
}

void BatchJobController::WriteRest(const std::shared_ptr<Pass>& pass, Done done) {
  const auto writes = MakeBatch(std::move(done));
  writes->RequeueAfter(pass->requeue_after);
  for (const Pass::Event& event : pass->events) {
    events_.Record(*pass->job, event.type, event.reason, event.message);
  }
  for (const json::SharedValue& pod : pass->release) Release(*pod, writes->Track());
  for (const json::SharedValue& pod : pass->stop) {
    // The job lets go of a pod before it stops it, so that the pod does not count as failed. If the
    // pod has succeeded meanwhile, it counts.
    Release(
        *pod,
        [this, pass, pod, ended = writes->Track()](const Result<json::SharedValue>& released) {
          if (!released.ok()) return ended(released);
          client_.Delete(client::resources::kPods, api::Namespace(*pod), api::Name(*pod),
                         {.precondition_uid = std::string(api::Uid(*pod))}, ended);
          events_.Record(*pass->job, "Normal", "SuccessfulDelete",
                         StrCat("Deleted pod: ", api::Name(*pod)));
        },
        true);
  }
  for (const json::Value& pod : pass->create) {
    client_.Create(client::resources::kPods, pass->ns, pod,
                   writes->Track([this, pass](const Result<json::SharedValue>& result) {
                     if (result.ok()) {
                       events_.Record(*pass->job, "Normal", "SuccessfulCreate",
                                      StrCat("Created pod: ", api::Name(**result)));
                     } else if (result.status().code() != Code::kAlreadyExists) {
                       events_.Record(*pass->job, "Warning", "FailedCreate",
                                      StrCat("Error creating: ", result.status().message()));
                     }
                   }));
  }
  if (pass->delete_job) {
    client_.Delete(client::resources::kJobs, pass->ns, pass->name,
                   {.propagation = "Background", .precondition_uid = pass->uid}, writes->Track());
  }
  writes->Close();
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): the client keeps the callbacks it is given

}  // namespace swell::controllers
