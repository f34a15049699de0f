#include "jobs/decisions/job_failures.h"

#include <algorithm>
#include <cstdint>

#include "base/random.h"
#include "base/strings.h"
#include "jobs/gpus/gpu_use.h"
#include "jobs/pass/failure_rules.h"
#include "kube/api/meta/failure_keys.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/objects/device_claim.h"
#include "kube/api/objects/failure_outlook.h"
#include "kube/controllers/context.h"
#include "kube/controllers/pod_facts.h"

namespace swell::jobs {
namespace {

constexpr std::string_view kMemoryCondition = "MemoryRaised";
constexpr std::string_view kCrashLoop = "CrashLoopBackOff";
constexpr int64_t kSparedMax = 10;
// A container that fails within this after its start has done little.
constexpr Duration kSoon = std::chrono::minutes(5);
// A container that fails within this has hardly started, and its next run will probably fail too.
constexpr Duration kAtOnce = std::chrono::minutes(1);
// When all members fail in their places, they keep their GPUs until each has failed kFailuresHeld
// times, or for kStartsHeld if they cannot start. Then others can use the GPUs for some time.
constexpr int64_t kFailuresHeld = 3;
constexpr Duration kStartsHeld = std::chrono::minutes(2);
constexpr Duration kGivenBackLeast = std::chrono::minutes(1);
constexpr Duration kStartsLaterMax = std::chrono::minutes(6);

// How often the container has failed in its place. Its restarts are counted when the next start
// begins: one that runs again, or is being made again, has not failed once more.
int64_t FailuresInPlace(const api::Failure& failure) {
  const bool starts = failure.settles || (failure.repeats() && failure.waits != kCrashLoop);
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

// Its key among the raises.
std::string PlaceOf(const ReplicaSpec& replica, const api::Failure& failure) {
  return StrCat(ToLower(replica.type), "/", failure.container);
}

int64_t MemoryOf(const json::Value& node) {
  const api::Amounts amounts = api::ReadAmounts(node, {"status", "allocatable"});
  const auto memory = amounts.find("memory");
  return memory == amounts.end() ? 0 : memory->second.Value();
}

// Failures of hardware that were not counted, those of this pass included.
int64_t SparedFailures(const JobPass& pass) {
  return std::max<int64_t>(
      0, ParseInt(pass.DecidedAnnotation(api::keys::kHardwareFailures)).value_or(0));
}

// A GPU that fails is not the job's fault. Not for ever, since only the log says that it was the
// GPU.
bool IsSpared(const JobPass& pass, const api::Failure& failure) {
  return failure.which == api::FailureClass::kHardware && SparedFailures(pass) < kSparedMax;
}

// A failure of hardware counts as no restart. True if it does not.
bool SpareHardware(JobPass& pass, const json::Value& pod, const api::Failure& failure) {
  if (!IsSpared(pass, failure)) return false;
  const int64_t spared = SparedFailures(pass) + 1;
  pass.annotations[api::keys::kHardwareFailures] = std::to_string(spared);
  pass.AvoidNode(api::NodeName(pod));
  // Peers that lose this member are explained by it.
  pass.annotations[api::keys::kLastFailure] =
      ChargedFailure{failure.time.value_or(pass.now), failure.which}.ToString();
  pass.AddEvent("Warning", "HardwareFailed",
                StrCat(failure.Sentence(), " Node ", api::NodeName(pod),
                       " is charged with it, and new pods of the job go to other nodes where those "
                       "have room. The member is made anew, which is not counted as a restart (",
                       spared, " of ", kSparedMax, " times)."));
  return true;
}

// A container that starts again in its pod keeps its GPU, so the pod is made anew.
void LeaveHardwareInPlace(JobPass& pass) {
  for (const auto& [name, pod] : pass.pods) {
    if (!pass.Wants(name) || api::HasEnded(*pod) || api::IsDeleting(*pod)) continue;
    const auto failure = api::FailureOf(*pod, pass.now);
    // A container that runs again may do well.
    if (!failure || !failure->repeats() || failure->settles) continue;
    if (SpareHardware(pass, *pod, *failure)) pass.delete_pods.push_back(pod);
  }
}

// Whether its members hold GPUs that others could use while it waits.
bool AsksForGpus(const JobSpec& spec) {
  return std::any_of(spec.replicas.begin(), spec.replicas.end(), [](const ReplicaSpec& replica) {
    const json::Value& pod = replica.pod_template;
    return GpusAskedBy(pod) > 0 || !api::Annotation(pod, api::keys::kGpuMemory).empty() ||
           api::HasDeviceClaims(pod);
  });
}

// Counts failures in a row that each came soon after a start, with `times` new ones.
int64_t CountCrashes(JobPass& pass, bool soon, int64_t times) {
  const int64_t before = ParseInt(api::Annotation(*pass.job, api::keys::kCrashes)).value_or(0);
  const int64_t crashes = soon ? std::clamp<int64_t>(before, 0, 1000) + times : 0;
  pass.annotations[api::keys::kCrashes] = std::to_string(crashes);
  return crashes;
}

std::string CrashesText(const JobPass& pass, int64_t crashes) {
  return StrCat(pass.kind.kind(), " ", pass.name, " failed ", crashes,
                crashes == 1 ? " time" : " times in a row", ", at its start or soon after it.");
}

// Members are made again when `delay` is over. They preempt nobody until `hold` is over, too.
std::string StartAfter(JobPass& pass, Duration delay, Duration hold, int64_t crashes) {
  const std::string from = api::FormatTime(pass.now + delay);
  if (delay > Duration::zero()) pass.annotations[api::keys::kStartsFrom] = from;
  if (hold == Duration::zero() || !AsksForGpus(pass.spec)) {
    pass.annotations[api::keys::kPreemptsFrom] = nullptr;
    return from;
  }
  const std::string until = api::FormatTime(pass.now + delay + hold);
  pass.annotations[api::keys::kPreemptsFrom] = until;
  pass.AddEvent("Warning", "PreemptionHeld",
                StrCat(CrashesText(pass, crashes), " Until ", until,
                       " it starts only where there is room, and preempts nobody."));
  return from;
}

// A job that fails soon after each start waits longer and longer for the next one.
void NoteCrash(JobPass& pass, api::Failure failure, const FailedRun& run) {
  const Duration ran = run.until - run.from;
  const int64_t crashes = CountCrashes(pass, ran < kSoon, 1);
  const Duration delay = ran < kAtOnce ? RestartDelay(crashes) : Duration::zero();
  const std::string from = StartAfter(pass, delay, PreemptionHold(crashes), crashes);
  if (delay == Duration::zero()) return;
  pass.AddEvent("Warning", "RestartDelayed",
                StrCat(CrashesText(pass, crashes), " It starts again at ", from, "."));
  // Shown like a container that starts again in its pod.
  failure.waits = kCrashLoop;
  failure.restarts = pass.restarts;
  pass.SetFirst(kDegraded, true, failure.Word(), failure.Sentence());
  json::Set(pass.status, {"failure"}, failure.ToJson());
}

// The failure is not over: the members will be made again later, and none runs yet.
bool StillFails(const JobPass& pass) {
  if (!pass.IsTrue(kDegraded) || !pass.IsTrue("Restarting")) return false;
  if (api::Annotation(*pass.job, api::keys::kStartsFrom).empty()) return false;
  return std::none_of(pass.pods.begin(), pass.pods.end(), [](const auto& named) {
    return api::Phase(*named.second) == "Running" && !api::IsDeleting(*named.second);
  });
}

// Containers restarted in place. Peers of a member that failed restart with it: theirs are its own.
int64_t InPlaceRestarts(const JobPass& pass) {
  int64_t own = 0, of_peers = 0;
  for (const auto& [name, pod] : pass.pods) {
    // One that is being removed is made anew, and begins with none.
    if (!pass.Wants(name) || api::IsDeleting(*pod)) continue;
    const int64_t restarts = api::RestartCount(*pod);
    const auto failure = restarts > 0 ? api::FailureOf(*pod, pass.now) : std::nullopt;
    if (failure && failure->which == api::FailureClass::kPeerLost) {
      of_peers = std::max(of_peers, restarts);
    } else {
      own += restarts;
    }
  }
  return std::max(own, of_peers);
}

// Kubeflow's two counts: containers restarted in place reach the limit, pods made anew pass it.
bool ExceedsBackoff(const JobPass& pass, int64_t in_place_restarts) {
  if (!pass.spec.backoff_limit) return false;
  int64_t limit = *pass.spec.backoff_limit;
  return pass.restarts + in_place_restarts > limit ||
         (in_place_restarts > 0 && in_place_restarts >= limit);
}

void SayRestarting(JobPass& pass) {
  const auto from = pass.annotations.find(api::keys::kStartsFrom);
  if (pass.IsTrue("Restarting") && from == pass.annotations.end()) return;
  const std::string message =
      StrCat(pass.kind.kind(), " ", pass.name,
             from == pass.annotations.end()
                 ? " is restarting."
                 : StrCat(" starts again at ", json::View(from->value().get_string()), "."),
             pass.FailureText());
  pass.SetRestarting(pass.kind.Reason("Restarting"), message);
  pass.AddEvent("Warning", pass.kind.Reason("Restarting"), message);
}

// Whether the job's manifest has rules for failures of its members.
bool SaysWhatFollows(const JobSpec& spec) {
  return std::any_of(spec.replicas.begin(), spec.replicas.end(), [](const ReplicaSpec& replica) {
    return !replica.on_failure.empty() || replica.relaunches > 0;
  });
}

// An error that every start repeats ends the job at its second time. True when it has.
bool DecideHopeless(JobPass& pass) {
  const std::optional<api::Failure>& failure = pass.failure;
  if (!failure || !NeverMends(*failure) || !FailedSoBefore(pass.status, *failure)) return false;
  if (api::Annotation(*pass.job, api::keys::kOnUserError) == "Restart") return false;
  if (SaysWhatFollows(pass.spec)) return false;
  // Servers come back however often they end, and the others serve meanwhile.
  const ReplicaSpec* replica = pass.ReplicaOf(failure->member);
  const bool always = replica != nullptr && replica->restart_policy == RestartPolicy::kAlways;
  if (always && pass.spec.elastic) return false;
  pass.Finish("Failed", "UserError",
              StrCat(pass.kind.kind(), " ", pass.name,
                     " failed because starting it again cannot help.", pass.FailureText()));
  return true;
}

// If every member failed soon after its start and waits to start again in its place: the largest
// number of such failures of one member. 0: some member may still do work, or has not had its
// chances.
int64_t FailuresInVain(JobPass& pass) {
  int64_t most = 0;
  for (const auto& [name, pod] : pass.pods) {
    if (!pass.Wants(name)) continue;
    const auto failure = api::FailureOf(*pod, pass.now);
    if (api::HasEnded(*pod) || api::IsDeleting(*pod) || !api::IsBound(*pod)) return 0;
    if (!failure || !failure->repeats() || failure->settles) return 0;
    if (failure->exit_code) {
      const auto run = LatestFailure(*pod, Runs::kEarlier);
      const bool at_once = !run || run->until - run->from < kAtOnce;
      if (!at_once || FailuresInPlace(*failure) < kFailuresHeld) return 0;
      most = std::max(most, FailuresInPlace(*failure));
      continue;
    }
    const Duration left = api::StartTime(*pod).value_or(pass.now) + kStartsHeld - pass.now;
    if (left > Duration::zero()) {
      pass.RequeueAfter(left);
      return 0;
    }
    most = std::max<int64_t>(most, 1);
  }
  return most;
}

std::string TemplatesMark(const JobSpec& spec) {
  std::string all;
  for (const ReplicaSpec& replica : spec.replicas) all += json::Print(replica.pod_template);
  return std::to_string(StableHash(all));
}

bool IsLater(const JobPass& pass, std::string_view annotation) {
  const auto time = api::ParseTime(pass.DecidedAnnotation(annotation));
  return time && *time > pass.now;
}

// When no member runs, the GPUs they hold are of no use: the members are deleted, and made again
// later. True if so.
bool GiveBackInVain(JobPass& pass) {
  // Old members that are still being deleted do not run.
  const bool gone = std::all_of(pass.pods.begin(), pass.pods.end(),
                                [](const auto& named) { return api::IsDeleting(*named.second); });
  if (gone && pass.IsTrue("Restarting") && JobFailures::StartsLater(pass)) return true;
  if (!pass.repeated || !pass.spec.grouped || !pass.delete_pods.empty()) return false;
  if (SaysWhatFollows(pass.spec) || !AsksForGpus(pass.spec)) return false;
  const int64_t failures = FailuresInVain(pass);
  if (failures == 0) return false;
  const api::Failure& failure = *pass.repeated;
  // An earlier pass has counted the failures, but could not delete the pods.
  if (JobFailures::StartsLater(pass)) {
    pass.StopPods(JobPass::Which::kAll);
    return true;
  }
  // A container that its node could not start does not count as a restart of the job.
  if (failure.exit_code) {
    pass.restarts += InPlaceRestarts(pass) + 1;
    pass.annotations[api::keys::kRestarts] = std::to_string(pass.restarts);
  }
  const int64_t crashes = CountCrashes(pass, /*soon=*/true, failures);
  const Duration hold = failure.exit_code ? PreemptionHold(crashes) : UnstartedHold(crashes);
  const std::string from =
      StartAfter(pass, std::max(RestartDelay(crashes), kGivenBackLeast), hold, crashes);
  const std::string message =
      StrCat(pass.kind.kind(), " ", pass.name, " gives its GPUs back and starts again at ", from,
             ". ", failure.Sentence());
  pass.SetRestarting("GpusGivenBack", message);
  pass.AddEvent("Warning", "GpusGivenBack", message);
  pass.StopPods(JobPass::Which::kAll);
  return true;
}

}  // namespace

// Failures that are the job's own. True when the job is over.
bool JobFailures::Decide(JobPass& pass) {
  if (FollowCorrection(pass)) return false;
  if (DecideHopeless(pass)) return true;
  bool restarting = false;
  bool restart_all = false;
  for (size_t i = 0; i < pass.spec.replicas.size(); ++i) {
    const ReplicaSpec& replica = pass.spec.replicas[i];
    for (int64_t k = 0; k < replica.replicas; ++k) {
      auto it = pass.pods.find(replica.PodName(pass.name, k));
      if (it == pass.pods.end()) continue;
      const json::Value& pod = *it->second;
      if (api::Phase(pod) != "Failed") continue;
      // A member that gave its place away is missed by nobody: the others train on.
      if (pass.spec.elastic && controllers::WasDisrupted(pod)) {
        if (!api::IsDeleting(pod)) pass.delete_pods.push_back(it->second);
        continue;
      }
      const Judgement judged = Judge(pass, i, pod);
      if (judged.verdict == OnFailure::kIgnore) continue;
      if (judged.verdict == OnFailure::kCompleteJob) {
        pass.Finish("Succeeded", pass.kind.Reason("Succeeded"),
                    StrCat(pass.kind.kind(), " ", pass.name, " is completed: ", it->first,
                           " failed, for which a policy of ", replica.type, " says CompleteJob."));
        return true;
      }
      restart_all = restart_all || judged.verdict == OnFailure::kRestartJob;
      if (!judged.retryable) {
        pass.Finish(
            "Failed", pass.kind.Reason("Failed"),
            StrCat(pass.kind.kind(), " ", pass.name, " failed because ", pass.counts[i].failed, " ",
                   replica.type, " replica(s) failed.", pass.FailureText()));
        return true;
      }
      restarting = true;
      if (api::IsDeleting(pod)) continue;
      pass.delete_pods.push_back(it->second);
      if (judged.charged) Charge(pass, replica, pod);
    }
  }
  if (ExceedsBackoff(pass, InPlaceRestarts(pass))) return EndAtBackoffLimit(pass);
  // Members that start again are counted as failed until their pods are gone.
  if (!restarting && pass.kind.Failed(pass.spec, pass.counts)) {
    pass.Finish("Failed", pass.kind.Reason("Failed"),
                StrCat(pass.kind.kind(), " ", pass.name,
                       " failed because too few members succeeded.", pass.FailureText()));
    return true;
  }
  if (restarting) SayRestarting(pass);
  if (!restart_all) {
    RaiseMemoryInPlace(pass, /*running_too=*/false);
    LeaveHardwareInPlace(pass);
    return GiveBackInVain(pass);
  }
  pass.delete_pods.clear();
  pass.StopPods(JobPass::Which::kAll);
  return true;
}

JobFailures::Judgement JobFailures::Judge(const JobPass& pass,
                                          size_t role,
                                          const json::Value& pod) const {
  const ReplicaSpec& replica = pass.spec.replicas[role];
  OnFailure verdict = pass.kind.ClassifyFailure(replica, pass.counts[role], pod, pass.restarts);
  const auto failure = api::FailureOf(pod, pass.now);
  const bool by_code = replica.restart_policy == RestartPolicy::kExitCode;
  const bool spared =
      replica.restart_policy != RestartPolicy::kNever && failure && IsSpared(pass, *failure);
  // Its exit code tells of another member's end.
  const bool lost_peer = by_code && failure && failure->which == api::FailureClass::kPeerLost;
  // The exit code is that of the launcher, which says only that a process failed.
  const bool by_signal = by_code && failure && api::LaunchedSignal(failure->said) != 0;
  const bool by_cluster = controllers::FailedByCluster(pod) || controllers::WasDisrupted(pod);
  const bool by_kind = verdict != OnFailure::kAsUsual && verdict != OnFailure::kAsUsualOrIgnore &&
                       verdict != OnFailure::kFailJob;
  const bool retryable = spared || lost_peer || by_signal || by_cluster || by_kind ||
                         api::IsDeleting(pod) ||
                         (by_code && controllers::ExitCode(pod).value_or(1) >= 128);
  if (verdict == OnFailure::kAsUsualOrIgnore && !retryable) verdict = OnFailure::kIgnore;
  return {.verdict = verdict,
          .retryable = retryable,
          // Only failures of its own are held against the job, and each once.
          .charged = verdict != OnFailure::kReplaceFree && !by_cluster &&
                     !counted_.contains(std::string(api::Uid(pod)))};
}

bool JobFailures::EndAtBackoffLimit(JobPass& pass) const {
  // What lacked memory gets more before its last start counts.
  if (!ExceedsBackoff(pass, 0) && RaiseMemoryInPlace(pass, /*running_too=*/true)) return false;
  pass.delete_pods.clear();
  pass.Finish("Failed", "BackoffLimitExceeded",
              StrCat(pass.kind.kind(), " ", pass.name,
                     " has failed because it has reached the specified backoff limit.",
                     pass.FailureText()));
  return true;
}

// A failed pod that is made anew. More memory, or another member's failure, may explain it.
void JobFailures::Charge(JobPass& pass, const ReplicaSpec& replica, const json::Value& pod) const {
  pass.dealt_with.emplace_back(api::Uid(pod));
  api::Failure failure = api::FailureOf(pod, pass.now).value_or(api::Failure{});
  if (RaiseMemory(pass, replica, pod) || SpareHardware(pass, pod, failure)) return;
  const auto latest = ChargedFailure::Parse(api::Annotation(*pass.job, api::keys::kLastFailure));
  const WallTime created = api::CreationTime(pod);
  const bool follows = latest && latest->Covers(failure.which, created, pass.now);
  const bool explained = failure.which == api::FailureClass::kPeerLost && pass.failure &&
                         pass.failure->member != failure.member;
  if (follows || explained) return;
  ++pass.restarts;
  pass.annotations[api::keys::kRestarts] = std::to_string(pass.restarts);
  pass.annotations[api::keys::kLastFailure] =
      ChargedFailure{failure.time.value_or(pass.now), failure.which}.ToString();
  const WallTime end = failure.time.value_or(pass.now);
  const FailedRun whole{api::StartTime(pod).value_or(end), end};
  ExplainMemory(pass, failure);
  NoteCrash(pass, failure, LatestFailure(pod, Runs::kLast).value_or(whole));
}

// Members are not made yet, because those before them failed soon after their start.
bool JobFailures::StartsLater(JobPass& pass) {
  const auto from = api::ParseTime(pass.DecidedAnnotation(api::keys::kStartsFrom));
  // A clock that was set back must not make a job wait for days.
  if (!from || *from <= pass.now || *from - pass.now > kStartsLaterMax) return false;
  pass.RequeueAfter(*from - pass.now);
  return true;
}

// Until when new pods may not preempt others; empty: they may, and those that wait may again.
std::string JobFailures::HoldPreemption(JobPass& pass) {
  const std::string_view text = pass.DecidedAnnotation(api::keys::kPreemptsFrom);
  const auto until = api::ParseTime(text);
  if (until && *until > pass.now) {
    pass.RequeueAfter(*until - pass.now);
    return std::string(text);
  }
  for (const auto& [name, pod] : pass.pods) {
    if (api::IsBound(*pod) || api::IsDeleting(*pod)) continue;
    if (!api::Annotation(*pod, api::keys::kPreemptsFrom).empty()) pass.free_pods.push_back(pod);
  }
  return "";
}

// The most memory that the container can have: the rest of the pod has to fit beside it.
int64_t JobFailures::MemoryMax(const json::Value& pod, std::string_view container) const {
  int64_t most = 0;
  for (const auto& [name, node] : nodes_.objects()) most = std::max(most, MemoryOf(*node));
  const api::Amounts all = api::PodAmounts(api::Spec(pod), api::AmountField::kRequests);
  const auto memory = all.find("memory");
  const int64_t whole = memory == all.end() ? 0 : memory->second.Value();
  return most - std::max<int64_t>(0, whole - MemoryLimitOf(pod, container));
}

JobFailures::NextLimit JobFailures::NextLimitOf(const JobPass& pass,
                                                const ReplicaSpec& replica,
                                                const json::Value& pod,
                                                const api::Failure& failure) const {
  if (api::Annotation(*pass.job, api::keys::kRaiseMemory) == "false") {
    return {.why_not = StrCat("the job's annotation ", api::keys::kRaiseMemory, " is false")};
  }
  const std::string_view refused = api::Annotation(*pass.job, api::keys::kMemoryRefused);
  if (!refused.empty()) return {.why_not = StrCat("more was refused: ", refused)};
  const int64_t current = MemoryLimitOf(pod, failure.container);
  if (current == 0) return {.why_not = "it has none"};
  const MemoryRaises raises = ParseMemoryRaises(pass.DecidedAnnotation(api::keys::kMemoryRaised));
  const auto known = raises.find(PlaceOf(replica, failure));
  if (known != raises.end() && known->second > current) {
    return {.bytes = known->second, .decided = true};
  }
  const int64_t first = MemoryLimitOf(replica.pod_template, failure.container);
  const int64_t most = MemoryMax(pod, failure.container);
  const int64_t next = NextMemory(first, current, most);
  if (next > 0) return {.bytes = next};
  if (NextMemory(first, current, INT64_MAX) > 0) {
    return {.why_not = StrCat("the largest node has ", MemoryText(most), " for it at most")};
  }
  return {.why_not = StrCat("it was raised from ", MemoryText(first), " three times already")};
}

// The pod knows only its own limit; the job knows the next one.
void JobFailures::ExplainMemory(const JobPass& pass, api::Failure& failure) const {
  if (failure.reason != "OOMKilled") return;
  const auto pod = pass.pods.find(failure.member);
  const ReplicaSpec* replica = pass.ReplicaOf(failure.member);
  if (pod == pass.pods.end() || replica == nullptr) return;
  if (replica->restart_policy == RestartPolicy::kNever) return;
  const int64_t current = MemoryLimitOf(*pod->second, failure.container);
  if (current == 0) return;
  const NextLimit next = NextLimitOf(pass, *replica, *pod->second, failure);
  const std::string used = StrCat("it used all of its ", MemoryText(current));
  if (next.bytes > 0) {
    failure.advice = StrCat(used, ", and its next pod gets ", MemoryText(next.bytes));
  } else {
    failure.advice = StrCat(used, "; the limit is not raised, since ", next.why_not,
                            ": give it more memory, or let it use less");
  }
}

void JobFailures::Explain(JobPass& pass) const {
  for (std::optional<api::Failure>* said : {&pass.failure, &pass.repeated}) {
    if (*said) ExplainMemory(pass, **said);
  }
}

void JobFailures::NoteGivenUp(JobPass& pass) const {
  for (size_t i = 0; i < pass.spec.replicas.size(); ++i) {
    ReplicaSpec& replica = pass.spec.replicas[i];
    for (int64_t k = 0; k < replica.replicas && pass.counts[i].failed > 0; ++k) {
      const auto pod = pass.pods.find(replica.PodName(pass.name, k));
      if (pod == pass.pods.end() || api::Phase(*pod->second) != "Failed") continue;
      if (Judge(pass, i, *pod->second).verdict == OnFailure::kIgnore) ++replica.given_up;
    }
  }
}

// The next pod of the role gets more memory if this one was killed for lack of it. True when it
// does, or a later limit than this pod's is set already.
bool JobFailures::RaiseMemory(JobPass& pass,
                              const ReplicaSpec& replica,
                              const json::Value& pod) const {
  const auto failure = api::FailureOf(pod, pass.now);
  if (!failure || failure->reason != "OOMKilled") return false;
  const NextLimit next = NextLimitOf(pass, replica, pod, *failure);
  if (next.decided) return true;
  if (next.bytes == 0) return false;
  MemoryRaises raises = ParseMemoryRaises(pass.DecidedAnnotation(api::keys::kMemoryRaised));
  raises[PlaceOf(replica, *failure)] = next.bytes;
  pass.annotations[api::keys::kMemoryRaised] = ToString(raises);
  const std::string message = StrCat(
      failure->member, ": container ", failure->container, " was killed at its limit of ",
      MemoryText(MemoryLimitOf(pod, failure->container)), " of memory. New pods of role ",
      ToLower(replica.type), " get ", MemoryText(next.bytes),
      ". To keep the limit, set the job's annotation ", api::keys::kRaiseMemory, " to false.");
  pass.SetFirst(kMemoryCondition, true, "OOMKilled", message);
  pass.AddEvent("Warning", "MemoryRaised", message);
  return true;
}

// A container that starts again in its pod keeps its limit, so the pod is made anew. True where one
// is. With `running_too` also those that run again, which else may do with what they have.
bool JobFailures::RaiseMemoryInPlace(JobPass& pass, bool running_too) const {
  bool raised = false;
  for (const ReplicaSpec& replica : pass.spec.replicas) {
    for (int64_t k = 0; k < replica.replicas; ++k) {
      const auto it = pass.pods.find(replica.PodName(pass.name, k));
      if (it == pass.pods.end() || api::HasEnded(*it->second) || api::IsDeleting(*it->second))
        continue;
      const auto failure = api::FailureOf(*it->second, pass.now);
      if (!failure || !failure->repeats() || (failure->settles && !running_too)) continue;
      if (!RaiseMemory(pass, replica, *it->second)) continue;
      pass.delete_pods.push_back(it->second);
      raised = true;
    }
  }
  return raised;
}

bool JobFailures::FollowCorrection(JobPass& pass) {
  const std::string mark = TemplatesMark(pass.spec);
  const std::string_view failed = api::Annotation(*pass.job, api::keys::kFailedTemplates);
  const bool waits =
      IsLater(pass, api::keys::kStartsFrom) || IsLater(pass, api::keys::kPreemptsFrom);
  const bool fails = pass.repeated || waits;
  if (failed.empty() && fails) pass.annotations[api::keys::kFailedTemplates] = mark;
  if (failed == mark && !fails) pass.annotations[api::keys::kFailedTemplates] = nullptr;
  if (failed.empty() || failed == mark) return false;
  size_t made_anew = 0;
  for (const auto& [name, pod] : pass.pods) {
    if (api::HasEnded(*pod) || api::IsDeleting(*pod)) continue;
    const auto failure = api::FailureOf(*pod, pass.now);
    if (!failure || !failure->repeats() || failure->settles) continue;
    pass.delete_pods.push_back(pod);
    ++made_anew;
  }
  for (std::string_view key :
       {api::keys::kStartsFrom, api::keys::kPreemptsFrom, api::keys::kCrashes}) {
    if (!api::Annotation(*pass.job, key).empty()) pass.annotations[key] = nullptr;
  }
  // The old mark stays until those members go: one that could not be deleted now is tried again.
  if (made_anew > 0) return true;
  pass.annotations[api::keys::kFailedTemplates] = nullptr;
  pass.AddEvent("Normal", "TemplateChanged",
                StrCat("The pod templates of ", pass.kind.kind(), " ", pass.name,
                       " have changed: its members that failed are made anew at once."));
  return false;
}

// A job whose members start again and again holds its place, but does not train.
void JobFailures::DecideDegraded(JobPass& pass) {
  if (pass.repeated) {
    const bool known = pass.IsTrue(kDegraded);
    const std::string message = pass.repeated->Sentence();
    pass.SetFirst(kDegraded, true, pass.repeated->Word(), message);
    json::Set(pass.status, {"failure"}, pass.repeated->ToJson());
    if (!known) pass.AddEvent("Warning", kDegraded, message);
    if (pass.repeated->settles) pass.RequeueAfter(*pass.repeated->settles - pass.now);
    return;
  }
  if (StillFails(pass)) return;
  json::Remove(pass.status, {"failure"});
  if (pass.IsTrue(kDegraded)) {
    pass.SetFirst(kDegraded, false, "Recovered", "No member starts again and again any more.");
  }
}

}  // namespace swell::jobs
