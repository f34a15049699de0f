// JobController: what a job reports of its members' failures.
#include <algorithm>

#include "base/strings.h"
#include "jobs/job_controller.h"
#include "jobs/job_pass.h"
#include "kube/api/objects/failure.h"

namespace swell::controllers {
namespace {

constexpr std::string_view kDegraded = "Degraded";

}  // namespace

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
void JobController::SetDegraded(Pass& pass,
                                bool degraded,
                                std::string_view reason,
                                std::string_view message) {
  SetCondition(pass, kDegraded, degraded, reason, message);
  json::Array& conditions = json::FindMutable(pass.status, {"conditions"})->get_array();
  const auto found = std::find_if(conditions.begin(), conditions.end(), [](const json::Value& one) {
    return json::GetString(one, {"type"}) == kDegraded;
  });
  if (found != conditions.end()) std::rotate(conditions.begin(), found, found + 1);
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
  if (failed && pass.failure) {
    json::Set(pass.status, {"failure"}, LastFailure(pass)->ToJson());
  } else {
    json::Remove(pass.status, {"failure"});
  }
}

}  // namespace swell::controllers
