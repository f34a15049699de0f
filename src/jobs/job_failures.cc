// JobController: what a job reports of its members' failures.
#include <algorithm>
#include <cstdint>

#include "base/strings.h"
#include "jobs/failure_rules.h"
#include "jobs/job_controller.h"
#include "jobs/job_pass.h"
#include "kube/api/meta/failure_keys.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/objects/failure.h"

namespace swell::controllers {
namespace {

constexpr std::string_view kDegraded = "Degraded";
constexpr std::string_view kReplicaFailure = "ReplicaFailure";  // as ReplicaSets have it
constexpr std::string_view kMemoryCondition = "MemoryRaised";
constexpr int64_t kSparedMax = 10;
// A pod that fails within this after its start has done little.
constexpr Duration kSoon = std::chrono::minutes(5);

// How often the container has failed in its place. Its restarts are counted when the next start
// begins: one that runs again, or is being made again, has not failed once more.
int64_t FailuresInPlace(const api::Failure& failure) {
  const bool starts = failure.settles || (failure.repeats() && failure.waits != "CrashLoopBackOff");
  return failure.restarts + (starts ? 0 : 1);
}

// It failed in the same words before, in place or as an earlier pod.
bool FailedSoBefore(const json::Value& status, const api::Failure& failure) {
  if (FailuresInPlace(failure) > 1) return true;
  const json::Array& attempts = json::GetArray(status, {"attempts"});
  return !failure.said.empty() &&
         std::any_of(attempts.begin(), attempts.end(), [&failure](const json::Value& one) {
           return json::GetString(one, {"member"}) == failure.member &&
                  json::GetString(one, {"message"}).find(failure.said) != std::string_view::npos;
         });
}

int64_t MemoryOf(const json::Value& node) {
  const api::Amounts amounts = api::ReadAmounts(node, {"status", "allocatable"});
  const auto memory = amounts.find("memory");
  return memory == amounts.end() ? 0 : memory->second.Value();
}

}  // namespace

// An error that every start repeats ends the job at its second time. True when it has.
bool JobController::DecideHopeless(Pass& pass) {
  const std::optional<api::Failure>& failure = pass.failure;
  if (!failure || !NeverMends(*failure) || !FailedSoBefore(pass.status, *failure)) return false;
  if (api::Annotation(*pass.job, keys::kOnUserError) == "Restart") return false;
  for (const ReplicaSpec& replica : pass.spec.replicas) {
    // What follows from their failures is said by the job.
    if (!replica.on_failure.empty() || replica.relaunches > 0) return false;
  }
  Finish(pass, "Failed", "UserError",
         StrCat(kind_->kind(), " ", pass.name, " failed because starting it again cannot help.",
                FailureText(pass)));
  return true;
}

// Containers restarted in place. Peers of a member that failed restart with it: theirs are its own.
int64_t JobController::InPlaceRestarts(const Pass& pass) {
  int64_t own = 0, of_peers = 0;
  for (const auto& [name, pod] : pass.pods) {
    // One that is being removed is made anew, and begins with none.
    if (!pass.Wants(name) || api::IsDeleting(*pod)) continue;
    const int64_t restarts = RestartCount(*pod);
    const auto failure = restarts > 0 ? api::FailureOf(*pod, pass.now) : std::nullopt;
    if (failure && failure->which == api::FailureClass::kPeerLost) {
      of_peers = std::max(of_peers, restarts);
    } else {
      own += restarts;
    }
  }
  return std::max(own, of_peers);
}

// A failed pod that is made anew. More memory, or another member's failure, may explain it.
void JobController::ChargeFailure(Pass& pass, const ReplicaSpec& replica, const json::Value& pod) {
  pass.dealt_with.emplace_back(api::Uid(pod));
  const api::Failure failure = api::FailureOf(pod, pass.now).value_or(api::Failure{});
  if (RaiseMemory(pass, replica, pod) || SpareHardware(pass, pod, failure)) return;
  const auto latest = ChargedFailure::Parse(api::Annotation(*pass.job, keys::kLastFailure));
  const WallTime created = api::CreationTime(pod);
  const bool follows = latest && latest->Covers(failure.which, created, pass.now);
  const bool explained = failure.which == api::FailureClass::kPeerLost && pass.failure &&
                         pass.failure->member != failure.member;
  if (follows || explained) return;
  ++pass.restarts;
  pass.annotations[keys::kRestarts] = std::to_string(pass.restarts);
  pass.annotations[keys::kLastFailure] =
      ChargedFailure{failure.time.value_or(pass.now), failure.which}.ToString();
  NoteCrash(pass, pod, failure);
}

// The job's annotation, as this pass has decided it.
std::string_view JobController::DecidedAnnotation(const Pass& pass, std::string_view key) {
  const auto decided = pass.annotations.find(key);
  return decided == pass.annotations.end() ? api::Annotation(*pass.job, key)
                                           : json::View(decided->value().get_string());
}

// Failures of hardware that were not counted, those of this pass included.
int64_t JobController::SparedFailures(const Pass& pass) {
  return std::max<int64_t>(0,
                           ParseInt(DecidedAnnotation(pass, keys::kHardwareFailures)).value_or(0));
}

// New pods of the job go to other nodes where those have room.
void JobController::AvoidNode(Pass& pass, std::string_view node) {
  pass.annotations[keys::kAvoidedNodes] =
      AddAvoidedNode(DecidedAnnotation(pass, keys::kAvoidedNodes), node);
}

// A GPU that fails is not the job's fault. Not for ever, since only the log says that it was the
// GPU.
bool JobController::IsSpared(const Pass& pass, const api::Failure& failure) {
  return failure.which == api::FailureClass::kHardware && SparedFailures(pass) < kSparedMax;
}

// A failure of hardware counts as no restart. True if it does not.
bool JobController::SpareHardware(Pass& pass, const json::Value& pod, const api::Failure& failure) {
  if (!IsSpared(pass, failure)) return false;
  const int64_t spared = SparedFailures(pass) + 1;
  pass.annotations[keys::kHardwareFailures] = std::to_string(spared);
  AvoidNode(pass, api::NodeName(pod));
  // Peers that lose this member are explained by it.
  pass.annotations[keys::kLastFailure] =
      ChargedFailure{failure.time.value_or(pass.now), failure.which}.ToString();
  pass.AddEvent("Warning", "HardwareFailed",
                StrCat(failure.Sentence(), " Node ", api::NodeName(pod),
                       " is charged with it, and new pods of the job go to other nodes where those "
                       "have room. The member is made anew, which is not counted as a restart (",
                       spared, " of ", kSparedMax, " times)."));
  return true;
}

// A container that starts again in its pod keeps its GPU, so the pod is made anew.
void JobController::LeaveHardwareInPlace(Pass& pass) {
  for (const auto& [name, pod] : pass.pods) {
    if (!pass.Wants(name) || HasEnded(*pod) || api::IsDeleting(*pod)) continue;
    const auto failure = api::FailureOf(*pod, pass.now);
    // One that runs again may do.
    if (!failure || !failure->repeats() || failure->settles) continue;
    if (SpareHardware(pass, *pod, *failure)) pass.delete_pods.push_back(pod);
  }
}

// A job that fails soon after each start takes no places of others for a while.
void JobController::NoteCrash(Pass& pass, const json::Value& pod, const api::Failure& failure) {
  const WallTime end = failure.time.value_or(pass.now);
  const bool soon = end - api::StartTime(pod).value_or(end) < kSoon;
  const int64_t before = ParseInt(api::Annotation(*pass.job, keys::kCrashes)).value_or(0);
  const int64_t crashes = soon ? std::clamp<int64_t>(before, 0, 1000) + 1 : 0;
  pass.annotations[keys::kCrashes] = std::to_string(crashes);
  const Duration hold = PreemptionHold(crashes);
  if (hold == Duration::zero()) {
    pass.annotations[keys::kPreemptsFrom] = nullptr;
    return;
  }
  const std::string until = api::FormatTime(pass.now + hold);
  pass.annotations[keys::kPreemptsFrom] = until;
  pass.AddEvent("Warning", "PreemptionHeld",
                StrCat(kind_->kind(), " ", pass.name, " failed ", crashes,
                       " times in a row, each time soon after its start. Until ", until,
                       " it starts only where there is room, and preempts nobody."));
}

// Until when new pods may not preempt others; empty: they may, and those that wait may again.
std::string JobController::HoldPreemption(Pass& pass) {
  const std::string_view text = api::Annotation(*pass.job, keys::kPreemptsFrom);
  const auto until = api::ParseTime(text);
  if (until && *until > pass.now) {
    pass.RequeueAfter(*until - pass.now);
    return std::string(text);
  }
  for (const auto& [name, pod] : pass.pods) {
    if (api::IsBound(*pod) || api::IsDeleting(*pod)) continue;
    if (!api::Annotation(*pod, keys::kPreemptsFrom).empty()) pass.free_pods.push_back(pod);
  }
  return "";
}

// The most memory that the container can have: the rest of the pod has to fit beside it.
int64_t JobController::MemoryMax(const json::Value& pod, std::string_view container) const {
  int64_t most = 0;
  for (const auto& [name, node] : nodes_.objects()) most = std::max(most, MemoryOf(*node));
  const api::Amounts all = api::PodAmounts(api::Spec(pod), api::AmountField::kRequests);
  const auto memory = all.find("memory");
  const int64_t whole = memory == all.end() ? 0 : memory->second.Value();
  return most - std::max<int64_t>(0, whole - MemoryLimitOf(pod, container));
}

// The next pod of the role gets more memory if this one was killed for lack of it. True when it
// does, or a later limit than this pod's is set already.
bool JobController::RaiseMemory(Pass& pass, const ReplicaSpec& replica, const json::Value& pod) {
  const auto failure = api::FailureOf(pod, pass.now);
  if (!failure || failure->reason != "OOMKilled") return false;
  if (api::Annotation(*pass.job, keys::kRaiseMemory) == "false") return false;
  if (!api::Annotation(*pass.job, keys::kMemoryRefused).empty()) return false;
  const std::string role = ToLower(replica.type);
  const std::string place = StrCat(role, "/", failure->container);
  const auto decided = pass.annotations.find(keys::kMemoryRaised);
  MemoryRaises raises = ParseMemoryRaises(decided == pass.annotations.end()
                                              ? api::Annotation(*pass.job, keys::kMemoryRaised)
                                              : json::View(decided->value().get_string()));
  const int64_t current = MemoryLimitOf(pod, failure->container);
  const auto known = raises.find(place);
  if (known != raises.end() && known->second > current) return true;
  const int64_t first = MemoryLimitOf(replica.pod_template, failure->container);
  const int64_t next = NextMemory(first, current, MemoryMax(pod, failure->container));
  if (next == 0) return false;
  raises[place] = next;
  pass.annotations[keys::kMemoryRaised] = ToString(raises);
  const std::string message =
      StrCat(failure->member, ": container ", failure->container, " was killed at its limit of ",
             MemoryText(current), " of memory. New pods of role ", role, " get ", MemoryText(next),
             ". To keep the limit, set the job's annotation ", keys::kRaiseMemory, " to false.");
  SetFirst(pass, kMemoryCondition, true, "OOMKilled", message);
  pass.AddEvent("Warning", "MemoryRaised", message);
  return true;
}

// A container that starts again in its pod keeps its limit, so the pod is made anew. True where one
// is. With `running_too` also those that run again, which else may do with what they have.
bool JobController::RaiseMemoryInPlace(Pass& pass, bool running_too) {
  bool raised = false;
  for (const ReplicaSpec& replica : pass.spec.replicas) {
    for (int64_t k = 0; k < replica.replicas; ++k) {
      const auto it = pass.pods.find(replica.PodName(pass.name, k));
      if (it == pass.pods.end() || HasEnded(*it->second) || api::IsDeleting(*it->second)) continue;
      const auto failure = api::FailureOf(*it->second, pass.now);
      if (!failure || !failure->repeats() || (failure->settles && !running_too)) continue;
      if (!RaiseMemory(pass, replica, *it->second)) continue;
      pass.delete_pods.push_back(it->second);
      raised = true;
    }
  }
  return raised;
}

// A limit of the namespace, or its quota, refuses the memory: the pods get what the job says.
void JobController::GiveBackMemory(const std::shared_ptr<Pass>& pass, const Status& refused) {
  if (refused.message().find("memory") == std::string::npos ||
      api::Annotation(*pass->job, keys::kMemoryRaised).empty() ||
      !api::Annotation(*pass->job, keys::kMemoryRefused).empty()) {
    return;
  }
  const json::Value patch = json::Object{
      {"metadata",
       json::Object{{"uid", api::Uid(*pass->job)},
                    {"annotations", json::Object{{keys::kMemoryRefused, refused.message()}}}}}};
  client_.Patch(kind_->resource(), pass->ns, pass->name, client::PatchType::kMerge, patch,
                [this, pass](const Result<json::SharedValue>& job) {
                  if (!job.ok()) return queue_.Add(pass->key);
                  events_.Record(*pass->job, "Warning", "MemoryNotRaised",
                                 StrCat("Pods with more memory were refused, so they are made "
                                        "with the memory that the job says: ",
                                        api::Annotation(**job, keys::kMemoryRefused)));
                });
}

// The failure as it is when its pod is not to start again.
std::optional<api::Failure> JobController::LastFailure(const Pass& pass) {
  std::optional<api::Failure> failure = pass.failure;
  if (failure && failure->exit_code) failure->waits.clear();
  return failure;
}

// " train-worker-1 failed: …", to be appended to the message of a condition; empty: none failed.
std::string JobController::FailureText(const Pass& pass) {
  const std::optional<api::Failure> failure = LastFailure(pass);
  return failure ? StrCat(" ", failure->Sentence()) : "";
}

void JobController::ObserveFailure(Pass& pass) {
  std::vector<json::SharedValue> pods, active;
  for (const auto& [name, pod] : pass.pods) {
    pods.push_back(pod);
    if (!api::IsDeleting(*pod) && !HasEnded(*pod)) active.push_back(pod);
  }
  pass.failure = api::FirstFailure(pods, pass.now);
  // Members that were taken away have not failed.
  if (pass.failure && pass.failure->which == api::FailureClass::kPreempted) pass.failure.reset();
  pass.repeated = api::FirstFailure(active, pass.now);
  if (pass.repeated && !pass.repeated->repeats()) pass.repeated.reset();
}

// Kubeflow's clients read the last condition as the state of the job, so this one stands first.
void JobController::SetFirst(Pass& pass,
                             std::string_view type,
                             bool status,
                             std::string_view reason,
                             std::string_view message) {
  SetCondition(pass, type, status, reason, message);
  json::Array& conditions = json::FindMutable(pass.status, {"conditions"})->get_array();
  const auto found = std::find_if(
      conditions.begin(), conditions.end(),
      [type](const json::Value& one) { return json::GetString(one, {"type"}) == type; });
  if (found != conditions.end()) std::rotate(conditions.begin(), found, found + 1);
}

void JobController::SetDegraded(Pass& pass,
                                bool degraded,
                                std::string_view reason,
                                std::string_view message) {
  SetFirst(pass, kDegraded, degraded, reason, message);
}

// A job whose members start again and again holds its place, but does not train.
void JobController::DecideDegraded(Pass& pass) {
  if (pass.repeated) {
    const bool known = pass.IsTrue(kDegraded);
    const std::string message = pass.repeated->Sentence();
    SetDegraded(pass, true, pass.repeated->Word(), message);
    json::Set(pass.status, {"failure"}, pass.repeated->ToJson());
    if (!known) pass.AddEvent("Warning", kDegraded, message);
    if (pass.repeated->settles) pass.RequeueAfter(*pass.repeated->settles - pass.now);
    return;
  }
  json::Remove(pass.status, {"failure"});
  if (pass.IsTrue(kDegraded)) {
    SetDegraded(pass, false, "Recovered", "No member starts again and again any more.");
  }
}

void JobController::NoteRefusal(Pass& pass) {
  const std::string uid(api::Uid(*pass.job));
  if (pass.create_pods.empty()) refused_.erase(uid);
  const auto refused = refused_.find(uid);
  if (refused != refused_.end()) {
    SetFirst(pass, kReplicaFailure, true, "FailedCreate", refused->second);
  } else if (pass.create_pods.empty() && pass.IsTrue(kReplicaFailure)) {
    SetFirst(pass, kReplicaFailure, false, "Created", "No member waits to be created any more.");
  }
}

// The pods that its members had before.
void JobController::NoteAttempts(Pass& pass) {
  std::set<std::string> first;
  for (const ReplicaSpec& replica : pass.spec.replicas) {
    for (int64_t k = 0; k < replica.replicas && first.size() < JobAttempts::kMembersNoted; ++k) {
      first.insert(replica.PodName(pass.name, k));
    }
  }
  attempts_.Note(std::string(api::Uid(*pass.job)), first, pass.now, pass.status);
}

// The end of a job says which failure ended it.
void JobController::NoteEnd(Pass& pass, bool failed, std::string_view reason) {
  if (pass.IsTrue(kDegraded)) {
    SetDegraded(pass, false, reason, "The job is over.");
  }
  for (std::string_view type :
       {std::string_view("Hung"), std::string_view("Straggler"), kReplicaFailure}) {
    if (pass.IsTrue(type)) SetFirst(pass, type, false, reason, "The job is over.");
  }
  slow_since_.erase(std::string(api::Uid(*pass.job)));
  if (failed && pass.failure) {
    json::Set(pass.status, {"failure"}, LastFailure(pass)->ToJson());
  } else {
    json::Remove(pass.status, {"failure"});
  }
}

}  // namespace swell::controllers
