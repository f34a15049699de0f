// What a Deployment says about itself: counts, and the conditions Available, Progressing and
// ReplicaFailure.
#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/workloads/deployment_pass.h"

namespace swell::controllers {
namespace {

constexpr int64_t kNoDeadline = 2'147'483'647;

struct NewCondition {
  std::string_view type;
  std::string_view status;
  std::string reason;
  std::string message;
};

const json::Value* Find(const json::Value& status, std::string_view type) {
  for (const json::Value& one : json::GetArray(status, {"conditions"})) {
    if (json::GetString(one, {"type"}) == type) return &one;
  }
  return nullptr;
}

// lastUpdateTime moves with every change of reason, and with every sign of progress.
void Set(json::Value& status, const NewCondition& next, WallTime now, bool touch = false) {
  const json::Value* known = Find(status, next.type);
  const bool same_status = known != nullptr && json::GetString(*known, {"status"}) == next.status;
  if (same_status && !touch && json::GetString(*known, {"reason"}) == next.reason) return;
  json::Object condition{{"type", next.type}, {"status", next.status}};
  condition["lastUpdateTime"] = api::FormatTime(now);
  condition["lastTransitionTime"] =
      same_status ? std::string(json::GetString(*known, {"lastTransitionTime"}))
                  : api::FormatTime(now);
  condition["reason"] = next.reason;
  condition["message"] = next.message;
  RemoveStatusCondition(status, next.type);
  json::Array conditions = json::GetArray(status, {"conditions"});
  conditions.push_back(std::move(condition));
  json::Set(status, {"conditions"}, std::move(conditions));
}

void SetCount(json::Value& status, std::string_view field, int64_t value) {
  if (value > 0) {
    json::Set(status, {field}, value);
  } else {
    json::Remove(status, {field});
  }
}

std::string ReasonOf(const json::Value& status, std::string_view type) {
  const json::Value* condition = Find(status, type);
  return condition != nullptr ? std::string(json::GetString(*condition, {"reason"})) : "";
}

// A ReplicaSet that cannot make its pods says so; so does its Deployment.
void CopyReplicaFailure(const std::vector<json::SharedValue>& sets,
                        json::Value& status,
                        WallTime now) {
  for (auto set = sets.rbegin(); set != sets.rend(); ++set) {
    const std::optional<api::Condition> failure = api::FindCondition(**set, "ReplicaFailure");
    if (!failure || SpecReplicas(**set) == 0) continue;
    Set(status,
        {"ReplicaFailure", failure->status, std::string(failure->reason),
         std::string(failure->message)},
        now);
    return;
  }
  RemoveStatusCondition(status, "ReplicaFailure");
}

}  // namespace

void DeploymentController::WriteStatus(Pass& pass) {
  const json::Value& it = *pass.deployment;
  const auto all = pass.All();
  const json::Value* known = json::Find(it, {"status"});
  json::Value status = known != nullptr && known->is_object() ? *known : json::Object{};
  const json::Value before = status;
  const int64_t available = Sum(all, "availableReplicas");
  const int64_t updated = pass.fresh ? StatusOf(*pass.fresh, "replicas") : 0;
  json::Set(status, {"observedGeneration"}, json::GetInt(it, {"metadata", "generation"}));
  SetCount(status, "replicas", Sum(all, "replicas"));
  SetCount(status, "updatedReplicas", updated);
  SetCount(status, "readyReplicas", Sum(all, "readyReplicas"));
  SetCount(status, "availableReplicas", available);
  SetCount(status, "unavailableReplicas", SumSpec(all) - available);
  if (pass.collided) {
    json::Set(status, {"collisionCount"}, json::GetInt(status, {"collisionCount"}) + 1);
  }
  const bool enough = available >= pass.wanted - pass.unavailable;
  Set(status,
      {"Available", enough ? "True" : "False",
       enough ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
       enough ? "Deployment has minimum availability."
              : "Deployment does not have minimum availability."},
      pass.now);
  CopyReplicaFailure(all, status, pass.now);
  const bool complete = updated == pass.wanted && Sum(all, "replicas") == pass.wanted &&
                        available == pass.wanted && pass.fresh;
  auto grown = [&](std::string_view field) {
    return json::GetInt(status, {field}) > json::GetInt(before, {field});
  };
  const int64_t old_before =
      json::GetInt(before, {"replicas"}) - json::GetInt(before, {"updatedReplicas"});
  const bool progressing = grown("updatedReplicas") || grown("readyReplicas") ||
                           grown("availableReplicas") ||
                           Sum(all, "replicas") - updated < old_before;
  if (json::GetInt(it, {"spec", "progressDeadlineSeconds"}, kNoDeadline) != kNoDeadline) {
    SetProgress(pass, status,
                complete      ? Rollout::kComplete
                : progressing ? Rollout::kProgressing
                              : Rollout::kStalled);
  }
  if (!pass.annotations.empty()) {
    json::Value patch = json::Object{{"metadata", json::Object{{"annotations", pass.annotations}}}};
    client_.Patch(client::resources::kDeployments, api::Namespace(it), api::Name(it),
                  client::PatchType::kMerge, patch, pass.writes->Track());
  }
  if (json::Equal(before, status) && known != nullptr) return;
  // Counts of zero are left out, so what was there must be taken away.
  for (const auto& [field, value] : before.get_object()) {
    if (status.get_object().if_contains(field) == nullptr) status.get_object()[field] = nullptr;
  }
  json::Value patch = json::Object{{"status", std::move(status)}};
  client_.Patch(client::resources::kDeployments, api::Namespace(it), api::Name(it),
                client::PatchType::kMerge, patch, pass.writes->Track(), "status");
}

void DeploymentController::SetProgress(Pass& pass, json::Value& status, Rollout rollout) {
  const std::string reason = ReasonOf(status, "Progressing");
  if (pass.paused) {
    if (reason != "ProgressDeadlineExceeded") {
      Set(status, {"Progressing", "Unknown", "DeploymentPaused", "Deployment is paused"}, pass.now);
    }
    return;
  }
  if (reason == "DeploymentPaused") {
    Set(status, {"Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed"}, pass.now);
  }
  if (!pass.created.empty()) {
    Set(status,
        {"Progressing", "True", "NewReplicaSetCreated",
         StrCat("Created new replica set ", Quote(pass.created))},
        pass.now, true);
    return;
  }
  if (pass.fresh) SetProgressOfNew(pass, status, rollout);
}

void DeploymentController::SetProgressOfNew(Pass& pass, json::Value& status, Rollout rollout) {
  const std::string reason = ReasonOf(status, "Progressing");
  const std::string name = Quote(api::Name(*pass.fresh));
  const bool was_complete =
      json::GetInt(status, {"replicas"}) == json::GetInt(status, {"updatedReplicas"}) &&
      reason == "NewReplicaSetAvailable";
  if (was_complete) return;
  if (reason.empty()) {
    Set(status,
        {"Progressing", "True", "FoundNewReplicaSet", StrCat("Found new replica set ", name)},
        pass.now);
  }
  if (rollout == Rollout::kComplete) {
    Set(status,
        {"Progressing", "True", "NewReplicaSetAvailable",
         StrCat("ReplicaSet ", name, " has successfully progressed.")},
        pass.now);
  } else if (rollout == Rollout::kProgressing) {
    Set(status,
        {"Progressing", "True", "ReplicaSetUpdated",
         StrCat("ReplicaSet ", name, " is progressing.")},
        pass.now, true);
  } else if (const json::Value* known = Find(status, "Progressing")) {
    const auto since = api::ParseTime(json::GetString(*known, {"lastUpdateTime"}));
    const auto deadline =
        std::chrono::seconds(json::GetInt(*pass.deployment, {"spec", "progressDeadlineSeconds"}));
    const Duration left = since ? *since + deadline - pass.now : Duration::zero();
    if (ReasonOf(status, "Progressing") == "ProgressDeadlineExceeded") return;
    if (left > Duration::zero()) {
      // A moment later, so that the deadline has passed by then in any rounding.
      pass.writes->RequeueAfter(left + std::chrono::seconds(1));
      return;
    }
    Set(status,
        {"Progressing", "False", "ProgressDeadlineExceeded",
         StrCat("ReplicaSet ", name, " has timed out progressing.")},
        pass.now);
  }
}

}  // namespace swell::controllers
