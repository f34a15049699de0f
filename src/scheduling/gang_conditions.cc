#include "scheduling/gang_conditions.h"

#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/pod_group.h"
#include "kube/controllers/workload.h"
#include "kube/controllers/write_batch.h"
#include "scheduling/pod_grouper.h"

namespace swell::scheduling {
namespace {

const client::Resource& Gangs() { return client::resources::kGangs; }

std::string GroupOf(const json::Value& gang) {
  return StrCat(api::Namespace(gang), "/podgroup.", api::Name(gang));
}

// The gang that Swell's group was made of; empty: it was made of something else.
std::string GangOf(const json::Value& group) {
  if (api::Annotation(group, kGroupedBy) != kGangRule) return "";
  for (const api::OwnerReference& owner : api::Owners(group)) {
    if (owner.kind == "PodGroup") return StrCat(api::Namespace(group), "/", owner.name);
  }
  return "";
}

}  // namespace

GangConditions::GangConditions(controllers::Context context,
                               std::function<void(const std::string& group)> reread)
    : context_(std::move(context)),
      reread_(std::move(reread)),
      queue_(context_.executor,
             context_.metrics,
             "gang-conditions",
             16,
             [this](const std::string& key, const client::WorkQueue::Done& done) {
               Reconcile(key, done);
             }),
      client_(context_.executor, context_.server, context_.user, "gang-conditions") {
  if (!context_.informers.Serves(Gangs())) return;
  gangs_ = &context_.informers.Of(Gangs());
  groups_ = &context_.informers.Of(client::resources::kPodGroups);
  gangs_->AddHandlers(
      {.on_add = controllers::Queued(queue_),
       .on_update = [this](const json::SharedValue& before,
                           const json::SharedValue& gang) { OnUpdate(*before, *gang); },
       .on_delete = {}});
  controllers::Follow(*groups_, [this](const json::SharedValue& group) {
    if (std::string gang = GangOf(*group); !gang.empty()) queue_.Add(gang);
  });
}

void GangConditions::OnUpdate(const json::Value& before, const json::Value& gang) {
  queue_.Add(api::KeyOf(gang));
  const json::Value* was = json::Find(before, {"spec"});
  const json::Value* is = json::Find(gang, {"spec"});
  if (was != nullptr && is != nullptr && !json::Equal(*was, *is)) reread_(GroupOf(gang));
}

void GangConditions::Reconcile(const std::string& key, const client::WorkQueue::Done& done) {
  if (!context_.informers.synced()) return done(controllers::kNotSynced);
  const json::SharedValue gang = gangs_->Get(key);
  if (!gang || api::IsDeleting(*gang)) return done(Duration::zero());
  const json::SharedValue group = groups_->Get(GroupOf(*gang));
  if (!group || GangOf(*group) != key) return done(Duration::zero());
  json::Array conditions = json::GetArray(*gang, {"status", "conditions"});
  const WallTime now = context_.clock.Now();
  const bool preempted = api::StatusPhase(*group) == "Preempted";
  const std::string_view message = api::StatusMessage(*group);
  bool changed = false;
  const auto set = [&](std::string_view type, bool yes, std::string_view reason,
                       std::string_view why) {
    changed =
        api::SetCondition(conditions, type, yes ? "True" : "False", reason, why, now) || changed;
  };
  constexpr std::string_view kPlaced = "PodGroupInitiallyScheduled";
  const bool was_placed = api::ConditionIsTrue(*gang, kPlaced);
  if (!was_placed && api::ScheduledCount(*group) >= api::MinMembers(*group)) {
    set(kPlaced, true, "Scheduled", "");
  } else if (!was_placed && !message.empty() && !preempted) {
    set(kPlaced, false, "Unschedulable", message);
  }
  if (preempted) {
    // The group's message tells soon why it waits.
    const auto last = api::LastPreemptionOf(*group);
    set(api::kDisruptionTarget, true, "PreemptionByScheduler", last ? last->message : message);
  } else if (api::ConditionIsTrue(*gang, api::kDisruptionTarget)) {
    set(api::kDisruptionTarget, false, "Scheduled", "");
  }
  if (!changed) return done(Duration::zero());
  const json::Value patch =
      json::Object{{"metadata", json::Object{{"resourceVersion", api::ResourceVersionText(*gang)}}},
                   {"status", json::Object{{"conditions", std::move(conditions)}}}};
  client_.Patch(Gangs(), api::Namespace(*gang), api::Name(*gang), client::PatchType::kMerge, patch,
                controllers::Ends(done), "status");
}

}  // namespace swell::scheduling
