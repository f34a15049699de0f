#include "jobs/decisions/job_progress.h"

#include <algorithm>

#include "base/strings.h"
#include "jobs/decisions/job_ranks.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/progress.h"
#include "kube/controllers/context.h"
#include "kube/controllers/pod_facts.h"

namespace swell::jobs {
namespace {

constexpr std::string_view kCheckpointFailed = "CheckpointFailed";
constexpr std::string_view kNotFinite = "MetricNotFinite";
constexpr std::string_view kSuspensionWaits = "SuspensionWaits";
constexpr std::string_view kWorldMismatch = "WorldMismatch";

// "loss is NaN at step 120" of what a pod reports; JSON has no such numbers, so they are texts.
// Numbers that came with a checkpoint alone are of its step.
std::string NotFiniteIn(const json::Value& pod) {
  const std::string_view metrics_text = api::Annotation(pod, api::keys::kMetrics);
  if (metrics_text.find("NaN") == std::string_view::npos &&
      metrics_text.find("Infinity") == std::string_view::npos) {
    return "";
  }
  const auto metrics = json::Parse(metrics_text, {.depth = 8, .bytes = 64 << 10});
  if (!metrics.ok() || !metrics->is_object()) return "";
  for (const auto& metric : metrics->get_object()) {
    if (!metric.value().is_string()) continue;
    const std::string_view value = json::View(metric.value().get_string());
    if (value != "NaN" && value != "Infinity" && value != "-Infinity") continue;
    const int64_t saved = ParseInt(api::Annotation(pod, api::keys::kStep)).value_or(0);
    const int64_t step = json::GetInt(*metrics, {"not_finite_since"},
                                      json::GetInt(*metrics, {"training_step"}, saved));
    constexpr size_t kNameMax = 64;
    return StrCat(std::string_view(metric.key()).substr(0, kNameMax), " is ", value,
                  step > 0 ? StrCat(" at step ", step) : "");
  }
  return "";
}

// A gradient of an older model is refused and computed again, which is work for nothing.
void NoteGradients(JobPass& pass) {
  for (const auto& [name, pod] : pass.pods) {
    const std::string_view text = api::Annotation(*pod, api::keys::kMetrics);
    if (text.find("stale_gradients") == std::string_view::npos) continue;
    const auto metrics = json::Parse(text, {.depth = 8, .bytes = 64 << 10});
    if (!metrics.ok()) continue;
    constexpr int64_t kCountMax = int64_t{1} << 53;
    const int64_t stale =
        std::clamp<int64_t>(json::GetInt(*metrics, {"stale_gradients"}), 0, kCountMax);
    const int64_t accepted =
        std::clamp<int64_t>(json::GetInt(*metrics, {"accepted_gradients"}), 0, kCountMax);
    json::Object gradients{{"accepted", accepted}, {"stale", stale}};
    if (accepted + stale > 0) gradients["stalePercentage"] = stale * 100 / (accepted + stale);
    json::Set(pass.status, {"gradients"}, std::move(gradients));
    return;
  }
}

// A save that failed is told until one goes well.
void NoteSaves(JobPass& pass) {
  for (const auto& [name, pod] : pass.pods) {
    const auto failed = api::FailedSaveOf(*pod);
    if (!failed) continue;
    const std::string message =
        StrCat("Pod ", name, " could not save step ", failed->step, ": ", failed->reason,
               ". Training continues; what was done since the last good checkpoint would be lost.");
    const bool known = pass.IsTrue(kCheckpointFailed);
    pass.SetFirst(kCheckpointFailed, true, "SaveFailed", message);
    if (!known) pass.AddEvent("Warning", kCheckpointFailed, message);
    return;
  }
  // Pods that are gone say nothing: what they could not save is still not saved.
  if (pass.pods.empty() || !pass.IsTrue(kCheckpointFailed)) return;
  pass.SetFirst(kCheckpointFailed, false, "Saved", "The last save went well.");
}

// The script decides whether to stop; users must see that steps may be wasted.
void NoteNotFinite(JobPass& pass) {
  for (const auto& [name, pod] : pass.pods) {
    const std::string what = NotFiniteIn(*pod);
    if (what.empty()) continue;
    // The condition keeps the step at which it was first seen.
    if (pass.IsTrue(kNotFinite)) return;
    const std::string message =
        StrCat("Pod ", name, " reports that ", what,
               ". Training continues, but its steps may be worth nothing: see the learning rate "
               "and the data, and start again from a checkpoint before that step.");
    pass.SetFirst(kNotFinite, true, "NotANumber", message);
    pass.AddEvent("Warning", kNotFinite, message);
    return;
  }
  if (pass.pods.empty() || !pass.IsTrue(kNotFinite)) return;
  pass.SetFirst(kNotFinite, false, "Finite", "All reported numbers are finite.");
}

// Ranks that did not find each other train as several jobs, each with all the data.
void NoteWorld(JobPass& pass) {
  if (pass.spec.elastic) return;
  const std::vector<RankMember> members = RankMembersOf(pass.pods);
  int64_t reporting = 0;
  for (const auto& [name, pod] : pass.pods) {
    const auto ranks = api::RanksOf(*pod);
    const bool trains = std::any_of(ranks.begin(), ranks.end(), [](const api::RankProgress& rank) {
      return rank.phase != "init" && rank.step > 0;
    });
    if (trains) ++reporting;
  }
  // Each of several pods says that it is alone, or the first of fewer ranks than there are.
  const bool all = reporting == pass.spec.TotalReplicas() && reporting > 1;
  const bool wrong = all && !members.empty() && members.front().rank.world < reporting;
  if (wrong && !pass.IsTrue(kWorldMismatch)) {
    const std::string message = StrCat(
        reporting, " pods train, but rank ", members.front().rank.rank, " says that the group has ",
        members.front().rank.world,
        " ranks: the pods may train apart, each on all the data. The script must join the group "
        "that WORLD_SIZE and MASTER_ADDR describe.");
    pass.SetFirst(kWorldMismatch, true, "RanksApart", message);
    pass.AddEvent("Warning", kWorldMismatch, message);
  } else if (!wrong && all && pass.IsTrue(kWorldMismatch)) {
    pass.SetFirst(kWorldMismatch, false, "Together", "The ranks form one group.");
  }
}

// The other ranks report rarely: when the first is gone, what they said last may be long past.
bool IsOlderThanKnown(const JobPass& pass, const api::JobProgress& progress) {
  const auto known = api::ParseTime(json::GetString(pass.status, {"progress", "lastUpdatedTime"}));
  return known && progress.updated < *known;
}

}  // namespace

void NoteProgress(JobPass& pass) {
  NoteSaves(pass);
  NoteNotFinite(pass);
  NoteWorld(pass);
  NoteGradients(pass);
  NoteSteps(pass);
}

void NoteSteps(JobPass& pass) {
  const std::vector<RankMember> members = RankMembersOf(pass.pods, EndedPods::kToo);
  if (members.empty()) return;
  const api::JobProgress progress = api::JobProgress::Of(members.front().rank);
  // A script that counts no steps says nothing by its phases, nor by the steps of its checkpoints.
  const bool counts = members.front().rank.total > 0 ||
                      (progress.phase == "step" && progress.step > 0) ||
                      json::Find(pass.status, {"progress"}) != nullptr;
  if (!counts) return;
  if (members.front().rank.rank > 0 && IsOlderThanKnown(pass, progress)) return;
  json::Set(pass.status, {"progress"}, progress.ToJson());
  // Steps that no attempt had reached end the count of restarts to no avail.
  if (json::GetInt(pass.status, {"hang", "restarts"}) > 0 &&
      progress.step > json::GetInt(pass.status, {"hang", "bestStep"})) {
    json::Remove(pass.status, {"hang", "restarts"});
  }
}

bool SuspensionWaits(JobPass& pass) {
  const bool runs = std::any_of(pass.pods.begin(), pass.pods.end(), [](const auto& named) {
    return api::Phase(*named.second) == "Running" && !api::IsDeleting(*named.second);
  });
  const bool forced = api::Annotation(*pass.job, api::keys::kSuspendUnsaved) == "true";
  const bool waits = runs && !forced && pass.IsTrue(kCheckpointFailed);
  if (!waits) {
    if (pass.IsTrue(kSuspensionWaits)) {
      pass.SetFirst(kSuspensionWaits, false, "Suspended", "The suspension does not wait any more.");
    }
    return false;
  }
  if (!pass.IsTrue(kSuspensionWaits)) {
    const std::string message =
        StrCat(pass.name,
               " keeps running until a save succeeds, because its last save failed. To suspend it "
               "now and lose the work since its last checkpoint: swell suspend ",
               pass.name, " -n ", pass.ns, " --force");
    pass.SetFirst(kSuspensionWaits, true, "SaveFailed", message);
    pass.AddEvent("Warning", kSuspensionWaits, message);
  }
  return true;
}

}  // namespace swell::jobs
