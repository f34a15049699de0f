#include "scheduling/pod_group.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/pod_group.h"
#include "kube/controllers/pod_facts.h"
#include "kube/controllers/queue.h"
#include "kube/controllers/write_batch.h"
#include "scheduling/group_marks.h"

namespace swell::scheduling {
namespace {

// How far a phase may lag behind: since the counts changed last, and in all. Counts change with
// each pod, and a gang of a thousand pods is worth few writes.
constexpr Duration kPhasePause = std::chrono::seconds(1);
constexpr Duration kPhaseLag = std::chrono::seconds(5);
constexpr int kCountsLonger = 5;  // times, where the phase stays
constexpr int kPlacedLonger = 3;  // its pods may run soon, which is worth a write of its own
// The same for a group of which nothing was written, and which has no pods.
constexpr Duration kEmptyLag = std::chrono::seconds(60);

// In the object itself: a Value made of it would be a copy that ends with the expression.
std::string_view PhaseIn(const json::Object& status) {
  const json::Value* phase = status.if_contains("phase");
  return phase != nullptr && phase->is_string() ? json::View(phase->get_string()) : "";
}

// People and controllers wait for the other phases.
bool MayLag(const json::Value& group, std::string_view phase) {
  return phase == api::StatusPhase(group) || phase == "Pending" || phase == "Scheduled";
}

// Built-in controllers (batch/v1 Job, apps/v1 ...) know nothing of groups.
bool HasGroupFromOwner(const json::Value& pod) {
  auto owner = api::ControllerOf(pod);
  return owner && owner->api_version.find('.') != std::string::npos &&
         owner->api_version.find(".k8s.io/") == std::string::npos;
}

std::string_view PhaseOf(const PodGroupCounts& counts,
                         int64_t min_members,
                         std::string_view before) {
  // An elastic group that keeps its minimum gave places away and continues.
  int64_t staying = counts.scheduled - counts.preempted_staying + counts.succeeded;
  if (counts.preempted > 0 && staying < std::max<int64_t>(1, min_members)) return "Preempted";
  const int64_t left = counts.total - counts.stopped;
  if (left > 0 && counts.succeeded == left) return "Succeeded";
  if (counts.failed > 0 && counts.running == 0 && counts.scheduled == 0) return "Failed";
  if (counts.running > 0 && counts.running + counts.succeeded >= min_members) return "Running";
  if (counts.scheduled > 0 && counts.scheduled + counts.succeeded >= min_members)
    return "Scheduled";
  // Its pods may be cleaned up; those that come anew are another run.
  if (left == 0 && (before == "Succeeded" || before == "Failed")) return before;
  // Until it is placed again, a preempted group is that: people look for the word.
  return before == "Preempted" ? "Preempted" : "Pending";
}

// Whether a merge of these fields would change the status; null removes a field.
bool Changes(const json::Value& group, const json::Object& status) {
  return std::any_of(status.begin(), status.end(), [&group](const auto& field) {
    const std::string_view name(field.key().data(), field.key().size());
    const json::Value* known = json::Find(group, {"status", name});
    return known != nullptr ? !json::Equal(*known, field.value()) : !field.value().is_null();
  });
}

}  // namespace

PodGroupCounts::PodGroupCounts(const std::vector<json::SharedValue>& pods) {
  for (const json::SharedValue& pod : pods) {
    ++total;
    std::string_view phase = api::Phase(*pod);
    if (phase == "Running") ++running;
    const bool deleting = api::IsDeleting(*pod);
    if (deleting && api::HasEnded(*pod)) ++stopped;
    if (phase == "Succeeded" && !deleting) ++succeeded;
    if (phase == "Failed" && !deleting) ++failed;
    bool placed = api::IsBound(*pod);
    bool stays = placed && !api::HasEnded(*pod) && !deleting;
    if (stays) ++scheduled;
    if (!controllers::WasPreempted(*pod)) continue;
    ++preempted;
    if (stays) ++preempted_staying;
    preempted_by = api::Annotation(*pod, api::keys::kPreemptedBy);
    preempted_rule = api::Annotation(*pod, api::keys::kPreemptedRule);
    preempted_message = controllers::PreemptionMessage(*pod);
  }
}

json::Object PodGroupStatus(const json::Value& group, const PodGroupCounts& counts, WallTime now) {
  const std::string_view before = api::StatusPhase(group);
  const std::string_view phase = PhaseOf(counts, api::MinMembers(group), before);
  json::Object status{{"phase", phase},
                      {"total", counts.total},
                      {"scheduled", counts.scheduled},
                      {"running", counts.running},
                      {"succeeded", counts.succeeded},
                      {"failed", counts.failed},
                      {"minMember", api::MinMembers(group)}};
  if (phase == "Preempted" && before != "Preempted") {
    status["preemptions"] = api::PreemptionCount(group) + 1;
    status["lastPreemption"] = json::Object{{"time", api::FormatTime(now)},
                                            {"by", counts.preempted_by},
                                            {"rule", counts.preempted_rule},
                                            {"message", counts.preempted_message}};
    status["reason"] = "Preempted";
    status["message"] = counts.preempted_message;
  } else if (phase == "Running" && before != "Running") {
    status["reason"] = nullptr;
    status["message"] = nullptr;
  }
  return status;
}

PodGroupController::PodGroupController(controllers::Context context)
    : context_(context),
      groups_(context_.informers.Of(client::resources::kPodGroups)),
      pods_(context_.informers.Of(client::resources::kPods)),
      queue_(
          controllers::MakeQueue(context_, "podgroups", 64, this, &PodGroupController::Reconcile)),
      client_(context_.executor, context_.server, context_.user, "podgroup-controller") {
  controllers::Follow(groups_, controllers::Queued(queue_));
  auto pod = [this](const json::SharedValue& it) { OnPod(*it); };
  controllers::Follow(pods_, pod, pod);
}

void PodGroupController::OnPod(const json::Value& pod) {
  std::string group = api::GroupKeyOf(pod);
  if (!group.empty()) queue_.Add(std::move(group));
}

void PodGroupController::Reconcile(const std::string& key, client::WorkQueue::Done done) {
  json::SharedValue group = groups_.Get(key);
  std::vector<json::SharedValue> pods = pods_.ByIndex("group", key);
  if (!group || api::IsDeleting(*group)) {
    unwritten_.erase(key);
    written_over_.erase(key);
  }
  if (!group) {
    if (pods.empty() || HasGroupFromOwner(*pods.front())) return done(Duration::zero());
    return MakeGroup(key, *pods.front(), std::move(done));
  }
  if (api::IsDeleting(*group)) return done(Duration::zero());
  if (pods.empty() && !api::Annotation(*group, api::keys::kMadeForPods).empty()) {
    return DropGroup(*group, std::move(done));
  }
  if (!ShowsLastWrite(key, *group)) return done(Duration::zero());  // it comes back with it
  const PodGroupCounts counts(pods);
  json::Object status = PodGroupStatus(*group, counts, context_.clock.Now());
  // Not before all are gone: each may be a long list.
  const bool drops_marks =
      json::Find(*group, {"status", "evicted"}) != nullptr && LivingMarks(*group, pods).empty();
  if (drops_marks) status["evicted"] = nullptr;
  if (!Changes(*group, status)) {
    unwritten_.erase(key);
    return done(Duration::zero());
  }
  if (const std::string_view phase = PhaseIn(status); !drops_marks && MayLag(*group, phase)) {
    const Duration lag = LagOf(key, *group, phase, counts);
    if (lag > Duration::zero()) return done(lag);
  }
  unwritten_.erase(key);
  json::Value patch = json::Object{{"status", std::move(status)}};
  // The scheduler may have marked others since, whom nothing else says to be preempted.
  if (drops_marks) {
    const std::string_view version = api::ResourceVersionText(*group);
    json::Set(patch, {"metadata", "resourceVersion"}, version);
  }
  client_.Patch(
      client::resources::kPodGroups, api::Namespace(*group), api::Name(*group),
      client::PatchType::kMerge, patch,
      [this, key, group, done = std::move(done)](const Result<json::SharedValue>& written) {
        const std::string_view over = api::ResourceVersionText(*group);
        if (written.ok() && api::ResourceVersionText(**written) != over) written_over_[key] = over;
        done(controllers::Outcome(written.status()));
      },
      "status");
}

// How long its status may still say what it does.
Duration PodGroupController::LagOf(const std::string& key,
                                   const json::Value& group,
                                   std::string_view phase,
                                   PodGroupCounts counts) {
  const SteadyTime now = context_.clock.Steady();
  Unwritten& entry = unwritten_.try_emplace(key, Unwritten{counts, now, now}).first->second;
  if (entry.counts != counts) {
    if (entry.counts.total == 0) entry.first = now;
    entry.since = now;
    entry.counts = std::move(counts);
  }
  const std::string_view before = api::StatusPhase(group);
  if (entry.counts.total == 0 && before.empty()) return entry.first + kEmptyLag - now;
  const int longer = phase == before ? kCountsLonger : phase == "Scheduled" ? kPlacedLonger : 1;
  return std::min(entry.since + longer * kPhasePause, entry.first + longer * kPhaseLag) - now;
}

// Else its pods, which change meanwhile, would have the same written again and again.
bool PodGroupController::ShowsLastWrite(const std::string& key, const json::Value& group) {
  const auto last = written_over_.find(key);
  if (last == written_over_.end()) return true;
  if (last->second == api::ResourceVersionText(group)) return false;
  written_over_.erase(last);
  return true;
}

void PodGroupController::DropGroup(const json::Value& group, client::WorkQueue::Done done) {
  client_.Delete(client::resources::kPodGroups, api::Namespace(group), api::Name(group),
                 {.precondition_uid = std::string(api::Uid(group))},
                 controllers::Ends(std::move(done), {}, {Code::kNotFound, Code::kConflict}));
}

void PodGroupController::MakeGroup(const std::string& key,
                                   const json::Value& first_pod,
                                   client::WorkQueue::Done done) {
  std::string ns(api::Namespace(first_pod));
  std::string_view set = api::Label(first_pod, api::keys::kPodSet);
  int64_t min_member = ParseInt(api::Annotation(first_pod, api::keys::kMinMember)).value_or(1);
  json::Object spec{{"podSets", json::Array{json::Object{{"name", set.empty() ? "default" : set},
                                                         {"minMember", min_member}}}}};
  std::string_view priority_class = api::PriorityClassName(first_pod);
  if (!priority_class.empty()) spec["priorityClassName"] = priority_class;
  std::string_view project = api::Label(first_pod, api::keys::kProject);
  if (!project.empty()) spec["project"] = project;
  json::Value group = json::Object{
      {"apiVersion", "swell.dev/v1"},
      {"kind", "PodGroup"},
      {"metadata", json::Object{{"name", key.substr(key.find('/') + 1)},
                                {"namespace", ns},
                                {"annotations", json::Object{{api::keys::kMadeForPods, "true"}}}}},
      {"spec", std::move(spec)}};
  client_.Create(client::resources::kPodGroups, ns, group,
                 controllers::Ends(std::move(done), {}, {Code::kAlreadyExists}));
}

}  // namespace swell::scheduling
