#include "scheduling/gang_conditions.h"

#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/pod_group.h"
#include "kube/controllers/queue.h"
#include "kube/controllers/workload.h"
#include "kube/controllers/write_batch.h"
#include "scheduling/gang_tree.h"
#include "scheduling/pod_grouper.h"

namespace swell::scheduling {
namespace {

const client::Resource& Gangs() { return client::resources::kGangs; }
const client::Resource& Composites() { return client::resources::kCompositeGangs; }

// Before the keys of composite groups.
constexpr std::string_view kComposite = "composite ";

std::string GroupOf(const json::Value& gang) {
  return StrCat(api::Namespace(gang), "/podgroup.", api::Name(gang));
}

// What Swell's group was made of: a PodGroup, or the root of a tree. Without a name, of something
// else.
api::OwnerReference MadeOf(const json::Value& group) {
  if (api::Annotation(group, kGroupedBy) != kGangRule) return {};
  for (const api::OwnerReference& owner : api::Owners(group)) {
    if (owner.kind == "PodGroup" || owner.kind == "CompositePodGroup") return owner;
  }
  return {};
}

}  // namespace

GangConditions::GangConditions(controllers::Context context,
                               std::function<void(const std::string& group)> reread)
    : context_(std::move(context)),
      reread_(std::move(reread)),
      queue_(controllers::MakeQueue(
          context_, "gang-conditions", 16, this, &GangConditions::Reconcile)),
      client_(context_.executor, context_.server, context_.user, "gang-conditions") {
  if (!context_.informers.Serves(Gangs())) return;
  gangs_ = &context_.informers.Of(Gangs());
  groups_ = &context_.informers.Of(client::resources::kPodGroups);
  gangs_->AddHandlers(
      {.on_add = controllers::Queued(queue_),
       .on_update = [this](const json::SharedValue& before,
                           const json::SharedValue& gang) { OnUpdate(*before, *gang); },
       .on_delete = {}});
  controllers::Follow(*groups_, [this](const json::SharedValue& group) { OnGroup(*group); });
  if (!context_.informers.Serves(Composites())) return;
  composites_ = &context_.informers.Of(Composites());
  controllers::Follow(*composites_, [this](const json::SharedValue& composite) {
    queue_.Add(StrCat(kComposite, api::KeyOf(*composite)));
  });
}

void GangConditions::OnGroup(const json::Value& group) {
  const api::OwnerReference made_of = MadeOf(group);
  if (made_of.name.empty()) return;
  const std::string_view ns = api::Namespace(group);
  if (made_of.kind == "PodGroup") return queue_.Add(StrCat(ns, "/", made_of.name));
  if (composites_ == nullptr) return;
  queue_.Add(StrCat(kComposite, ns, "/", made_of.name));
  QueueParts(group, "groups", *composites_, kComposite);
  QueueParts(group, "podSets", *gangs_, "");
}

// A part has the name of its object, or a shorter one if that is too long.
void GangConditions::QueueParts(const json::Value& group,
                                std::string_view field,
                                const client::Informer& informer,
                                std::string_view prefix) {
  const std::string_view ns = api::Namespace(group);
  for (const json::Value& part : json::GetArray(group, {"spec", field})) {
    const std::string_view name = json::GetString(part, {"name"});
    const std::string key = StrCat(ns, "/", name);
    if (informer.Get(key)) {
      queue_.Add(StrCat(prefix, key));
      continue;
    }
    for (const auto& [other, object] : informer.objects()) {
      if (api::Namespace(*object) == ns && PodSetOfGang(api::Name(*object)) == name) {
        queue_.Add(StrCat(prefix, other));
      }
    }
  }
}

void GangConditions::OnUpdate(const json::Value& before, const json::Value& gang) {
  queue_.Add(api::KeyOf(gang));
  const json::Value* was = json::Find(before, {"spec"});
  const json::Value* is = json::Find(gang, {"spec"});
  if (was != nullptr && is != nullptr && !json::Equal(*was, *is)) reread_(GroupOf(gang));
}

// Swell's group that the PodGroup or composite group is, or is a part of; null if there is none.
json::SharedValue GangConditions::GroupFor(const json::Value& gang, bool composite) const {
  std::string_view kind = composite ? "CompositePodGroup" : "PodGroup";
  json::SharedValue root;  // keeps the text of `name`
  std::string_view name = api::Name(gang);
  if (composites_ != nullptr) {
    auto above = RootAbove(gang, [this, &gang](std::string_view parent) {
      return composites_->Get(StrCat(api::Namespace(gang), "/", parent));
    });
    if (!above.ok() || (composite && !IsCompositeGang(gang))) return nullptr;
    root = *above;
    if (root) {
      kind = "CompositePodGroup";
      name = api::Name(*root);
    }
  }
  json::SharedValue group =
      groups_->Get(StrCat(api::Namespace(gang), "/", ToLower(kind), ".", name));
  if (!group) return nullptr;
  const api::OwnerReference made_of = MadeOf(*group);
  return made_of.kind == kind && made_of.name == name ? group : nullptr;
}

void GangConditions::Reconcile(const std::string& key, const client::WorkQueue::Done& done) {
  const bool composite = key.starts_with(kComposite);
  const json::SharedValue gang =
      composite ? composites_->Get(key.substr(kComposite.size())) : gangs_->Get(key);
  if (!gang || api::IsDeleting(*gang)) return done(Duration::zero());
  const json::SharedValue group = GroupFor(*gang, composite);
  if (!group) return done(Duration::zero());
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
  const std::string_view placed =
      composite ? "CompositePodGroupInitiallyScheduled" : "PodGroupInitiallyScheduled";
  const bool was_placed = api::ConditionIsTrue(*gang, placed);
  if (!was_placed && api::ScheduledCount(*group) >= api::MinMembers(*group)) {
    set(placed, true, "Scheduled", "");
  } else if (!was_placed && !message.empty() && !preempted) {
    set(placed, false, "Unschedulable", message);
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
  client_.Patch(composite ? Composites() : Gangs(), api::Namespace(*gang), api::Name(*gang),
                client::PatchType::kMerge, patch, controllers::Ends(done), "status");
}

}  // namespace swell::scheduling
