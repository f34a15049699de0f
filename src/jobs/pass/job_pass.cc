#include "jobs/pass/job_pass.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "jobs/pass/failure_rules.h"
#include "kube/api/meta/failure_keys.h"
#include "kube/api/objects/progress.h"
#include "kube/controllers/context.h"
#include "kube/controllers/pod_facts.h"

namespace swell::jobs {
namespace {

// The scheduler deletes the pods that it marks. If one is still there after this, the scheduler has
// died.
constexpr Duration kMarkedMax = std::chrono::seconds(10);

// It failed once, runs again, and its ranks have stepped since.
bool StepsAgain(const json::Value& pod, WallTime now) {
  const auto failure = api::FailureOf(pod, now);
  if (!failure || !failure->settles || !failure->time || failure->restarts > 1) return false;
  const std::vector<api::RankProgress> ranks = api::RanksOf(pod);
  return std::any_of(ranks.begin(), ranks.end(), [&failure](const api::RankProgress& rank) {
    return rank.phase == "step" && rank.changed > *failure->time && !rank.stalled;
  });
}

}  // namespace

void JobPass::ObserveFailure() {
  std::vector<json::SharedValue> all, active;
  for (const auto& [pod_name, pod] : pods) {
    all.push_back(pod);
    if (!api::IsDeleting(*pod) && !api::HasEnded(*pod) && !StepsAgain(*pod, now))
      active.push_back(pod);
  }
  failure = api::FirstFailure(all, now);
  // Members that were taken away have not failed.
  if (failure && failure->which == api::FailureClass::kPreempted) failure.reset();
  repeated = api::FirstFailure(active, now);
  if (repeated && !repeated->repeats()) repeated.reset();
}

const ReplicaSpec* JobPass::ReplicaOf(const std::string& pod_name) const {
  // Names of members end with their number. A job may have thousands, and this is asked of each.
  const size_t digits = pod_name.find_last_not_of("0123456789") + 1;
  const int64_t number = ParseInt(std::string_view(pod_name).substr(digits)).value_or(0);
  for (const ReplicaSpec& replica : spec.replicas) {
    const int64_t index = replica.numbered ? number : 0;
    if (index < replica.replicas && replica.PodName(name, index) == pod_name) return &replica;
  }
  return nullptr;
}

bool JobPass::GangPlaced() const {
  for (const ReplicaSpec& replica : spec.replicas) {
    for (int64_t k = 0; k < std::min(replica.min_member.value_or(0), replica.replicas); ++k) {
      auto pod = pods.find(replica.PodName(name, k));
      if (pod == pods.end() || !api::IsBound(*pod->second)) return false;
    }
  }
  return true;
}

bool JobPass::GangRuns() const {
  for (size_t i = 0; i < spec.replicas.size(); ++i) {
    const ReplicaSpec& replica = spec.replicas[i];
    const int64_t needed =
        std::min(replica.min_member.value_or(0), replica.replicas - replica.given_up);
    if (counts[i].running + counts[i].succeeded < needed) return false;
  }
  return true;
}

bool JobPass::KeepsVitalMembers() const {
  for (const ReplicaSpec& replica : spec.replicas) {
    for (int64_t k = 0; k < std::min(replica.vital, replica.replicas); ++k) {
      auto pod = pods.find(replica.PodName(name, k));
      if (pod == pods.end() || !api::IsBound(*pod->second) || api::IsDeleting(*pod->second) ||
          controllers::WasPreempted(*pod->second) || controllers::WasDisrupted(*pod->second)) {
        return false;
      }
    }
  }
  return true;
}

bool JobPass::Shrinks() const {
  return std::any_of(delete_pods.begin(), delete_pods.end(), [this](const json::SharedValue& pod) {
    return !Wants(std::string(api::Name(*pod)));
  });
}

bool JobPass::OnlyAdds() const {
  return annotations.empty() && !vanished_seen && !delete_job && delete_pods.empty() &&
         stop_pods.empty() && free_pods.empty() && events.empty();
}

std::string_view JobPass::DecidedAnnotation(std::string_view annotation) const {
  const auto decided = annotations.find(annotation);
  if (decided == annotations.end()) return api::Annotation(*job, annotation);
  return decided->value().is_string() ? json::View(decided->value().get_string()) : "";
}

std::optional<api::Failure> JobPass::LastFailure() const {
  std::optional<api::Failure> last = failure;
  if (last && last->exit_code) last->waits.clear();
  return last;
}

std::string JobPass::FailureText() const {
  const std::optional<api::Failure> last = LastFailure();
  return last ? StrCat(" ", last->Sentence()) : "";
}

void JobPass::SetCondition(std::string_view type,
                           bool is_true,
                           std::string_view reason,
                           std::string_view message) {
  json::Array& conditions = json::FindMutable(status, {"conditions"})->get_array();
  if (!api::SetCondition(conditions, type, is_true ? "True" : "False", reason, message, now)) {
    return;
  }
  // Kubeflow's conditions carry the time of the last update too, and the newest stands last.
  for (size_t i = 0; i < conditions.size(); ++i) {
    if (json::GetString(conditions[i], {"type"}) != type) continue;
    json::Value changed = conditions[i];
    json::Set(changed, {"lastUpdateTime"}, api::FormatTime(now));
    conditions.erase(conditions.begin() + static_cast<std::ptrdiff_t>(i));
    conditions.push_back(std::move(changed));
    return;
  }
}

void JobPass::SetFirst(std::string_view type,
                       bool is_true,
                       std::string_view reason,
                       std::string_view message) {
  SetCondition(type, is_true, reason, message);
  json::Array& conditions = json::FindMutable(status, {"conditions"})->get_array();
  const auto found = std::find_if(
      conditions.begin(), conditions.end(),
      [type](const json::Value& one) { return json::GetString(one, {"type"}) == type; });
  if (found != conditions.end()) std::rotate(conditions.begin(), found, found + 1);
}

void JobPass::SetRestarting(std::string_view reason, std::string_view message) {
  SetCondition("Restarting", true, reason, message);
  if (IsTrue("Running")) SetCondition("Running", false, reason, message);
}

void JobPass::Finish(std::string_view type, std::string_view reason, std::string message) {
  ends_now = true;
  if (IsTrue("Running")) SetCondition("Running", false, reason, message);
  NoteEnd(type == "Failed", reason);
  SetCondition(type, true, reason, message);
  json::Set(status, {"completionTime"}, api::FormatTime(now));
  AddEvent(type == "Failed" ? "Warning" : "Normal", reason, std::move(message));
}

void JobPass::NoteEnd(bool failed, std::string_view reason) {
  for (std::string_view type : {kDegraded, kHung, kStraggler, kReplicaFailure}) {
    if (IsTrue(type)) SetFirst(type, false, reason, "The job is over.");
  }
  if (failed && failure) {
    json::Set(status, {"failure"}, LastFailure()->ToJson());
  } else {
    json::Remove(status, {"failure"});
  }
}

void JobPass::StopPods(Which which) {
  for (const auto& [pod_name, pod] : pods) {
    if (api::IsDeleting(*pod) || (which == Which::kUnfinished && api::HasEnded(*pod))) continue;
    const Duration marked = now - controllers::PreemptionTime(*pod).value_or(WallTime());
    if (marked >= Duration::zero() && marked < kMarkedMax) {
      RequeueAfter(kMarkedMax - marked);
    } else {
      delete_pods.push_back(pod);
    }
  }
}

void JobPass::AvoidNode(std::string_view node) {
  annotations[api::keys::kAvoidedNodes] =
      AddAvoidedNode(DecidedAnnotation(api::keys::kAvoidedNodes), node);
}

void JobPass::AddEvent(std::string_view type, std::string_view reason, std::string message) {
  events.push_back({std::string(type), std::string(reason), std::move(message)});
}

void JobPass::RequeueAfter(Duration delay) {
  if (requeue_after.count() == 0 || delay < requeue_after) requeue_after = delay;
}

}  // namespace swell::jobs
