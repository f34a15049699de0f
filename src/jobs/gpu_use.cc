#include "jobs/gpu_use.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/progress.h"
#include "kube/controllers/pod_facts.h"

namespace swell::controllers {
namespace {

using client::GpuUse;

GpuUse UseInPhase(std::string_view phase) {
  if (phase == "init" || phase == "load" || phase == "data") return GpuUse::kLoading;
  return phase == "save" ? GpuUse::kSaving : GpuUse::kTraining;
}

// Empty if the pod reports nothing that can be read.
std::optional<GpuUse> Reported(const json::Value& pod) {
  const std::vector<api::RankProgress> ranks = api::RanksOf(pod);
  if (ranks.empty() || ranks.front().phase.empty()) return std::nullopt;
  const bool hangs = std::any_of(ranks.begin(), ranks.end(),
                                 [](const api::RankProgress& rank) { return rank.stalled; });
  return hangs ? GpuUse::kHung : UseInPhase(ranks.front().phase);
}

bool ContainerFails(const json::Value& pod) {
  for (const api::ContainerStatus& status : api::ContainerStatuses(pod)) {
    if (status.Ended() ? status.exit_code != 0 : status.Waits() && status.restart_count > 0) {
      return true;
    }
  }
  return false;
}

}  // namespace

client::GpuUse GpuUseOf(const json::Value& pod, bool gang_runs) {
  if (api::IsDeleting(pod)) return GpuUse::kStopping;
  if (Phase(pod) != "Running") return GpuUse::kStarting;
  if (ContainerFails(pod)) return GpuUse::kFailing;
  if (!gang_runs || ReportedWorld(pod) == 0) return GpuUse::kWaiting;
  return Reported(pod).value_or(GpuUse::kTraining);
}

std::string JobOfPod(const json::Value& pod) {
  const auto owner = api::ControllerOf(pod);
  return StrCat(api::Namespace(pod), "/", owner ? owner->name : api::Name(pod));
}

}  // namespace swell::controllers
