#include "jobs/decisions/job_requests.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/gate_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/request_keys.h"
#include "kube/api/objects/pod.h"
#include "kube/controllers/context.h"
#include "kube/controllers/pod_facts.h"

namespace swell::jobs {
namespace {

int64_t RequeuesOf(const json::Value& object) {
  return std::max<int64_t>(0, ParseInt(api::Annotation(object, api::keys::kRequeues)).value_or(0));
}

// The word; empty: the pod requests nothing.
std::string RequestOf(const json::Value& pod) {
  const std::string_view published = api::Annotation(pod, api::keys::kJobRequest);
  if (!published.empty()) return std::string(published);
  for (const api::ContainerStatus& container : api::ContainerStatuses(pod)) {
    if (!container.Ended() || !container.message.starts_with("{")) continue;
    const auto said = json::Parse(container.message, {.depth = 4, .bytes = 4096});
    if (!said.ok()) continue;
    const std::string_view word = json::GetString(*said, {api::keys::kRequestField});
    if (!word.empty()) return std::string(word);
  }
  return "";
}

}  // namespace

bool DecideRequested(JobPass& pass) {
  if (api::Label(*pass.job, api::keys::kSlurmJobId).empty()) return false;
  const int64_t requeues = RequeuesOf(*pass.job);
  bool stops = false;
  std::string requester;
  for (const auto& [name, pod] : pass.pods) {
    if (RequeuesOf(*pod) < requeues) {
      stops = true;
      continue;
    }
    const std::string word = RequestOf(*pod);
    if (word == api::keys::kRequestCancel) {
      pass.Finish(
          "Failed", api::keys::kCancelled,
          StrCat(pass.kind.kind(), " ", pass.name, " was cancelled by its own pod ", name, "."));
      return true;
    }
    // A pod that is preempted starts again anyway, and that counts once.
    if (word == api::keys::kRequestRequeue && !controllers::WasPreempted(*pod) &&
        requester.empty()) {
      requester = name;
    }
  }
  if (!requester.empty() && !stops && pass.spec.on_preemption != OnPreemption::kFail) {
    pass.annotations[api::keys::kRequeues] = std::to_string(requeues + 1);
    stops = true;
  }
  if (!stops) return false;
  if (!pass.IsTrue("Restarting")) {
    const std::string message =
        StrCat(pass.kind.kind(), " ", pass.name, " is requeued",
               requester.empty() ? "" : StrCat(" at the request of its pod ", requester),
               ": it stops, waits and starts again.");
    pass.SetRestarting("Requeued", message);
    pass.AddEvent("Normal", "Requeued", message);
  }
  pass.StopPods(JobPass::Which::kAll);
  return true;
}

}  // namespace swell::jobs
