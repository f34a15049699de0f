#include "jobs/gpus/gpu_use.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/progress.h"
#include "kube/controllers/pod_facts.h"
#include "sched_inputs/gpu_request.h"

namespace swell::jobs {
namespace {

using client::GpuUse;

// Times in annotations and conditions are whole seconds.
constexpr Duration kTimeResolution = std::chrono::seconds(1);

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

WallTime SavedAt(const json::Value& pod) {
  return api::ParseTime(api::Annotation(pod, api::keys::kCheckpointTime)).value_or(WallTime());
}

// The first rank alone reports the checkpoint on its pod. Each rank says at its end that all have
// saved.
bool EndedAfterSaving(const json::Value& pod) {
  const std::vector<api::ContainerStatus> statuses = api::ContainerStatuses(pod);
  return std::any_of(statuses.begin(), statuses.end(), [](const api::ContainerStatus& status) {
    if (!status.Ended() || !status.message.starts_with('{')) return false;
    const auto said = json::Parse(status.message, {.depth = 8, .bytes = 4096});
    return said.ok() && json::Find(*said, {"checkpoint", "step"}) != nullptr;
  });
}

double LostByPreemption(const json::Value& pod) {
  if (EndedAfterSaving(pod)) return 0;
  const auto lost = ParseInt(api::Annotation(pod, api::keys::kPreemptedLost));
  const auto told = api::FindCondition(pod, api::kDisruptionTarget);
  if (!lost || !told || !told->Since()) return 0;
  return SavedAt(pod) + kTimeResolution > *told->Since() ? 0 : static_cast<double>(*lost);
}

// From its last checkpoint, or its start, to its end.
double LostBetween(const json::Value& pod, double gpus, WallTime from, WallTime until) {
  const Duration lost = until - std::max(SavedAt(pod), from);
  return gpus * std::max(0.0, std::chrono::duration<double>(lost).count());
}

double LostByFailure(const json::Value& pod, double gpus, WallTime end) {
  if (api::Phase(pod) != "Failed" || controllers::WasDisrupted(pod) ||
      controllers::FailedByCluster(pod))
    return 0;
  const bool elastic = !api::Annotation(pod, api::keys::kMemberPriority).empty();
  if (api::IsDeleting(pod) || (elastic && api::UsesSdk(pod))) return 0;
  if (!api::Annotation(pod, api::keys::kStopRequested).empty()) return 0;
  const auto run = LatestFailure(pod, Runs::kLast);
  return LostBetween(pod, gpus, run ? run->from : api::StartTime(pod).value_or(end), end);
}

}  // namespace

client::GpuUse GpuUseOf(const json::Value& pod, bool gang_runs) {
  if (api::IsDeleting(pod)) return GpuUse::kStopping;
  if (api::Phase(pod) != "Running") return GpuUse::kStarting;
  if (ContainerFails(pod)) return GpuUse::kFailing;
  if (!gang_runs || controllers::ReportedWorld(pod) == 0) return GpuUse::kWaiting;
  return Reported(pod).value_or(GpuUse::kTraining);
}

std::string JobOfPod(const json::Value& pod) {
  const auto owner = api::ControllerOf(pod);
  return StrCat(api::Namespace(pod), "/", owner ? owner->name : api::Name(pod));
}

WallTime BoundAt(const json::Value& pod, WallTime now) {
  const auto scheduled = api::FindCondition(pod, "PodScheduled");
  return std::min(scheduled ? scheduled->Since().value_or(now) : now, now);
}

WallTime EndedAt(const json::Value& pod, WallTime now) {
  WallTime last;
  for (const api::ContainerStatus& status : api::ContainerStatuses(pod)) {
    if (!status.finished_at) return now;
    last = std::max(last, *status.finished_at);
  }
  return last == WallTime() ? now : std::min(last, now);
}

double GpusAskedBy(const json::Value& pod) {
  const auto part = sched_inputs::ParseGpuFraction(api::Annotation(pod, api::keys::kGpuFraction));
  if (part) {
    const int64_t devices =
        ParseInt(api::Annotation(pod, api::keys::kGpuFractionDevices)).value_or(1);
    return *part * static_cast<double>(std::clamp<int64_t>(devices, 1, 1024));
  }
  const api::Amounts amounts = api::PodAmounts(api::Spec(pod), api::AmountField::kRequests);
  const auto gpus = amounts.find(api::kGpuResource);
  return gpus == amounts.end() ? 0 : static_cast<double>(gpus->second.Value());
}

std::optional<FailedRun> LatestFailure(const json::Value& pod, Runs among) {
  const std::string_view state = among == Runs::kEarlier ? "lastState" : "state";
  std::optional<FailedRun> last;
  for (const json::Value& status : json::GetArray(pod, {"status", "containerStatuses"})) {
    const json::Value* end = json::Find(status, {state, "terminated"});
    if (end == nullptr || json::GetInt(*end, {"exitCode"}) == 0) continue;
    const auto until = api::ParseTime(json::GetString(*end, {"finishedAt"}));
    if (!until || (last && last->until >= *until)) continue;
    const auto from = api::ParseTime(json::GetString(*end, {"startedAt"}));
    last = FailedRun{from ? *from : api::StartTime(pod).value_or(*until), *until};
  }
  return last;
}

double LossInPlace::Take(const json::Value& pod, double gpus) {
  const auto run = LatestFailure(pod, Runs::kEarlier);
  if (!run || run->until <= until_) return 0;
  until_ = run->until;
  return api::UsesSdk(pod) ? 0 : LostBetween(pod, gpus, run->from, run->until);
}

double LostGpuSeconds(const json::Value& pod, double gpus, WallTime end) {
  return controllers::WasPreempted(pod) ? LostByPreemption(pod) : LostByFailure(pod, gpus, end);
}

}  // namespace swell::jobs
