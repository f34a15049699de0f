#include "jobs/decisions/job_disruptions.h"

#include <algorithm>

#include "base/strings.h"
#include "jobs/decisions/job_moves.h"
#include "kube/controllers/context.h"
#include "kube/controllers/pod_facts.h"

namespace swell::jobs {
namespace {

void DecidePreempted(JobPass& pass, const std::string& message, bool again) {
  if (pass.spec.on_preemption == OnPreemption::kFail) {
    return pass.Finish("Failed", "Preempted",
                       StrCat(pass.kind.kind(), " ", pass.name, " failed because ", message,
                              "; with on-preemption Requeue it would wait and resume"));
  }
  if (again) pass.SetCondition("Preempted", false, "Preempted", message);
  if (!pass.IsTrue("Preempted")) {
    pass.SetCondition("Preempted", true, "Preempted", message);
    json::Set(pass.status, {"preemptions"}, json::GetInt(pass.status, {"preemptions"}) + 1);
    if (pass.IsTrue("Running")) pass.SetCondition("Running", false, "Preempted", message);
    pass.AddEvent("Normal", "Preempted", message);
  }
  // The gang goes whole, its finished members too: all start again together from the checkpoint.
  pass.StopPods(JobPass::Which::kAll);
  EndHold(pass);
}

}  // namespace

void JobDisruptions::OnPodGone(const std::string& job_uid, const json::Value& pod) {
  if (!controllers::WasPreempted(pod)) return;
  vanished_[job_uid] = {StrCat(api::Name(pod), ": ", controllers::PreemptionMessage(pod)),
                        PodAge::Of(pod)};
}

std::string JobDisruptions::MessageOf(const std::string& job_uid) const {
  const auto vanished = vanished_.find(job_uid);
  return vanished == vanished_.end() ? "" : vanished->second.message;
}

// Whether the node that the pod is on is gone or has stopped talking.
bool JobDisruptions::OnLostNode(const json::Value& pod) const {
  std::string_view name = api::NodeName(pod);
  if (name.empty()) return false;
  json::SharedValue node = nodes_.Get(name);
  if (!node) return true;
  const std::optional<api::Condition> ready = api::FindCondition(*node, "Ready");
  return ready && ready->status == "Unknown";
}

bool JobDisruptions::Decide(JobPass& pass) const {
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
    if (controllers::WasPreempted(*pod)) {
      if (preempted.empty()) preempted = StrCat(name, ": ", controllers::PreemptionMessage(*pod));
      fresh = fresh || !last.Stopped(PodAge::Of(*pod));
    } else if (controllers::WasDisrupted(*pod)) {
      if (disrupted.empty()) disrupted = StrCat(name, ": ", controllers::PreemptionMessage(*pod));
    } else if (api::Phase(*pod) == "Failed") {
      failed = failed || !api::IsDeleting(*pod);
      failed_old = failed_old || last.Stopped(PodAge::Of(*pod));
    } else if (!api::IsDeleting(*pod)) {
      lost_node = lost_node || OnLostNode(*pod);
      // Only the gang counts: members in groups of their own cannot train without it.
      const bool of_gang =
          !pass.spec.tiered() || api::Label(*pod, api::keys::kPodGroup) == pass.name;
      if (of_gang && api::IsBound(*pod)) ++staying;
    }
  }
  auto vanished = vanished_.find(pass.uid());
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
        StrCat(pass.kind.kind(), " ", pass.name, " is restarting because of ", disrupted);
    pass.SetRestarting(pass.kind.Reason("Restarting"), message);
    pass.AddEvent("Warning", pass.kind.Reason("Restarting"), message);
  }
  pass.StopPods(JobPass::Which::kAll);
  return true;
}

}  // namespace swell::jobs
