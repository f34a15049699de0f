#include "cli/jobs/why_facts.h"

#include "base/strings.h"
#include "cli/jobs/what_if.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"

namespace swell::cli {

bool WhyFacts::Waits() const {
  return !job.over() && job.status != "Suspended" && job.PendingPods() > 0;
}

bool WhyFacts::Podless() const {
  return job.pods.empty() && !job.over() && job.status != "Suspended";
}

bool WhyFacts::LacksPods() const {
  return Podless() || (Waits() && !IsPod() && static_cast<int64_t>(job.pods.size()) < job.least);
}

bool WhyFacts::Fails() const { return !job.over() && job.failure && job.failure->repeats(); }

bool WhyFacts::IsPod() const { return job.kind->kind == "Pod"; }

std::string_view WhyFacts::PodNode() const { return api::NodeName(*job.object); }

std::string_view WhyFacts::OtherScheduler() const {
  // Once a pod has a node, its scheduler has done its part.
  const json::Value* pod = WaitingPod();
  if (IsPod()) pod = PodNode().empty() ? job.object.get() : nullptr;
  const std::string_view name = pod == nullptr ? "" : api::SchedulerName(*pod);
  return name == "swell" || name == "default-scheduler" ? "" : name;
}

bool WhyFacts::WaitsForScheduler() const {
  if (!Waits() || !OtherScheduler().empty()) return false;
  // A pod that its node is about to start waits for no scheduler.
  return IsPod() ? PodNode().empty() && !LacksGroup() : WaitingPod() != nullptr;
}

bool WhyFacts::LacksGroup() const {
  const std::optional<api::Condition> placed = api::FindCondition(*job.object, "PodScheduled");
  return placed && placed->reason == "GroupMissing";
}

const json::Value* WhyFacts::WaitingPod() const {
  const json::Value* most = nullptr;
  for (const json::SharedValue& pod : job.pods) {
    if (api::IsBound(*pod) || api::HasEnded(*pod)) continue;
    if (most == nullptr || MilliGpus(*pod) > MilliGpus(*most)) most = &*pod;
  }
  return most;
}

const json::Value* WhyFacts::StartingPod() const {
  if (!Waits() || WaitingPod() != nullptr) return nullptr;
  for (const json::SharedValue& pod : job.pods) {
    if (api::IsBound(*pod) && api::StatusPhase(*pod) == "Pending") return &*pod;
  }
  return nullptr;
}

std::string WhyFacts::Group() const {
  const json::Value* pod = WaitingPod();
  return pod != nullptr ? GroupOfPod(*pod) : StrCat(job.ns, "/", job.name);
}

const ProjectView* WhyFacts::Project() const { return tree.Find(tree.ChargedProject(job)); }

}  // namespace swell::cli
