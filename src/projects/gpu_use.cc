#include "projects/gpu_use.h"

#include <optional>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/controllers/pod_facts.h"

namespace swell::controllers {
namespace {

using client::GpuUse;

// What ranks report (README of the SDK): a list with phase and stalled, or one of them.
constexpr std::string_view kProgress = "swell.dev/progress";
constexpr size_t kProgressBytesMax = 16 << 10;
constexpr size_t kProgressDepthMax = 8;

GpuUse UseInPhase(std::string_view phase) {
  if (phase == "init" || phase == "load" || phase == "data") return GpuUse::kLoading;
  return phase == "save" ? GpuUse::kSaving : GpuUse::kTraining;
}

// Empty if the pod reports nothing that can be read.
std::optional<GpuUse> Reported(const json::Value& pod) {
  const std::string_view text = api::Annotation(pod, kProgress);
  if (text.empty()) return std::nullopt;
  const auto document = json::Parse(text, {.depth = kProgressDepthMax, .bytes = kProgressBytesMax});
  if (!document.ok() || !document->is_array() || document->get_array().empty()) return std::nullopt;
  const json::Array& ranks = document->get_array();
  for (const json::Value& rank : ranks) {
    if (json::GetBool(rank, {"stalled"})) return GpuUse::kHung;
  }
  const std::string_view phase = json::GetString(ranks.front(), {"phase"});
  if (phase.empty()) return std::nullopt;
  return UseInPhase(phase);
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
