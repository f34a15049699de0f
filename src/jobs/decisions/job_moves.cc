#include "jobs/decisions/job_moves.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/gpu_type_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/controllers/context.h"
#include "kube/controllers/pod_facts.h"

namespace swell::jobs {
namespace {

// A pod that the scheduler says nothing of for so long is not waited for.
constexpr Duration kPlacedWithin = std::chrono::seconds(30);

bool Waits(const json::Value& pod) {
  return !api::IsBound(pod) && !api::IsDeleting(pod) && !api::HasEnded(pod);
}

// The scheduler found no room for it, and makes none.
bool FoundNoRoom(const json::Value& pod) {
  const std::optional<api::Condition> placed = api::FindCondition(pod, "PodScheduled");
  return placed && placed->status == "False" && placed->reason == "Unschedulable" &&
         api::NominatedNode(pod).empty();
}

}  // namespace

void EndHold(JobPass& pass) {
  if (api::Annotation(*pass.job, api::keys::kHeldGpuType).empty()) return;
  pass.annotations[api::keys::kHeldGpuType] = nullptr;
}

bool DecideMoved(JobPass& pass) {
  std::string_view held = api::Annotation(*pass.job, api::keys::kHeldGpuType);
  // A person may have written it, and no pod could be made for it.
  if (!api::CheckLabelValue(held).empty()) held = {};
  bool others = false, stopping = false, ending = false;
  for (const auto& [name, pod] : pass.pods) {
    if (api::Annotation(*pod, api::keys::kHeldGpuType) == held) continue;
    if (held.empty()) {
      // What runs there may stay.
      if (Waits(*pod)) pass.delete_pods.push_back(pod);
      continue;
    }
    others = true;
    stopping = stopping || api::IsDeleting(*pod);
    ending = ending || api::Phase(*pod) == "Succeeded";
  }
  if (held.empty()) return !pass.delete_pods.empty();
  if (others) {
    if (ending && !stopping) return false;
    if (!pass.IsTrue("Restarting")) {
      pass.SetRestarting("Moved",
                         StrCat(pass.kind.kind(), " ", pass.name, " moves to ", held,
                                " GPUs: it stops, and starts again there from its checkpoint."));
    }
    pass.StopPods(JobPass::Which::kAll);
    return true;
  }
  const auto placed = std::count_if(pass.pods.begin(), pass.pods.end(), [](const auto& named) {
    return api::IsBound(*named.second) && !api::IsDeleting(*named.second);
  });
  if (placed >= pass.spec.min_available.value_or(pass.spec.TotalReplicas())) return false;
  // Before all are there, the scheduler misses members, not room.
  if (std::ssize(pass.pods) < pass.spec.TotalReplicas()) return false;
  bool no_room = false;
  for (const auto& [name, pod] : pass.pods) {
    if (!Waits(*pod)) continue;
    const Duration left = api::CreationTime(*pod) + kPlacedWithin - pass.now;
    no_room = no_room || FoundNoRoom(*pod) || left <= Duration::zero();
    if (left > Duration::zero()) pass.RequeueAfter(left);
  }
  if (!no_room) return false;
  EndHold(pass);
  pass.AddEvent("Normal", "MoveGivenUp",
                StrCat("No room on ", held, " GPUs any more: it starts where it can"));
  for (const auto& [name, pod] : pass.pods) {
    if (Waits(*pod)) pass.delete_pods.push_back(pod);
  }
  return true;
}

}  // namespace swell::jobs
