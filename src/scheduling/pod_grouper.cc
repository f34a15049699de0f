#include "scheduling/pod_grouper.h"

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/device_claim.h"
#include "kube/api/objects/pod_group.h"
#include "kube/controllers/pod_facts.h"
#include "kube/controllers/queue.h"
#include "sched_inputs/sched_convert.h"
#include "scheduling/gang_conditions.h"

namespace swell::scheduling {
namespace {

constexpr size_t kAtOnce = 32;
constexpr int kOwnersMax = 8;
constexpr size_t kCachedMax = 4096;
// Members of a gang come together: their owner is read once.
constexpr Duration kFresh = std::chrono::seconds(2);
// How long a preempted group without pods stays: its operator makes the pods anew, and the group
// keeps what happened to it.
constexpr Duration kPreemptedStays = std::chrono::minutes(10);
constexpr std::string_view kGroupKey = "group ";  // before the key of a group in the queue

bool Gone(Code code) { return code == Code::kNotFound || code == Code::kConflict; }

// Zero: it is not waited for.
Duration PreemptedStays(const json::Value& group, WallTime now) {
  if (api::StatusPhase(group) != "Preempted") return Duration::zero();
  const auto last = api::LastPreemptionOf(group);
  if (!last || !last->time) return Duration::zero();
  return std::max(Duration::zero(), kPreemptedStays - (now - *last->time));
}

}  // namespace

struct PodGrouper::Walk {
  json::SharedValue pod;
  Found found;
  std::optional<api::OwnerReference> next;
  int steps = 0;
  bool fresh = false;  // what was read a moment ago is not good enough
  std::function<void(const Result<Found>&)> done;
};

PodGrouper::PodGrouper(controllers::Context context, PodGrouperOptions options)
    : context_(std::move(context)),
      options_(std::move(options)),
      pods_(context_.informers.Of(client::resources::kPods)),
      groups_(context_.informers.Of(client::resources::kPodGroups)),
      projects_(context_.informers.Of(client::resources::kProjects)),
      events_(controllers::MakeRecorder(context_, "pod-grouper")),
      queue_(
          controllers::MakeQueue(context_, "pod-grouper", kAtOnce, this, &PodGrouper::Reconcile)),
      client_(context_.executor, context_.server, context_.user, "pod-grouper") {
  rules_.Extend(options_.rules);
  // Before pods are followed: of those that are known already it hears at once, and no more.
  map_read_ = options_.ns.empty();
  controllers::Follow(
      pods_, [this](const json::SharedValue& pod) { OnPod(*pod); },
      [this](const json::SharedValue& pod) { OnPodGone(*pod); });
  groups_.AddHandlers(
      {.on_add = {}, .on_update = {}, .on_delete = [this](const json::SharedValue& group) {
         if (api::Annotation(*group, kGroupedBy).empty()) return;
         queue_.Add(StrCat(kGroupKey, api::KeyOf(*group)));
       }});
  FollowTrees();
  if (!map_read_) ReadMap();
}

void PodGrouper::FollowTrees() {
  using client::resources::kCompositeGangs;
  using client::resources::kGangs;
  if (!context_.informers.Serves(kCompositeGangs) || !context_.informers.Serves(kGangs)) return;
  gangs_ = &context_.informers.Of(kGangs);
  composites_ = &context_.informers.Of(kCompositeGangs);
  for (client::Informer* informer : {gangs_, composites_}) {
    informer->AddHandlers(
        {.on_add = [this](const json::SharedValue& gang) { OnTree(*gang); },
         .on_update =
             [this](const json::SharedValue& before, const json::SharedValue& gang) {
               const json::Value* was = json::Find(*before, {"spec"});
               const json::Value* is = json::Find(*gang, {"spec"});
               if (was != nullptr && is != nullptr && !json::Equal(*was, *is)) OnTree(*gang);
             },
         .on_delete = {}});
  }
}

// Pods may have waited for the group, and an existing gang may get one more part.
void PodGrouper::OnTree(const json::Value& gang) {
  const bool composite = api::KindOf(gang) == "CompositePodGroup";
  if (!composite && json::GetString(gang, {"spec", "parentCompositePodGroupName"}).empty()) return;
  for (const auto& [key, pod] : pods_.objects()) {
    const bool waits = api::Namespace(*pod) == api::Namespace(gang) &&
                       json::Find(*pod, {"spec", "schedulingGroup"}) != nullptr;
    if (waits) OnPod(*pod);
  }
  Found found{.rule = GroupingRule(), .owner = {}, .api_version = {}, .kind = {}};
  if (composite || !JoinTree(gang, found).ok() || !found.tree) return;
  Reread(StrCat(api::Namespace(gang), "/", GroupNameOf(*found.rule, *found.owner, gang)));
}

GangObjects PodGrouper::GangsIn(std::string_view ns) const {
  const auto all = [ns = std::string(ns)](const client::Informer& informer) {
    return [&informer, ns] {
      std::vector<json::SharedValue> out;
      for (const auto& [key, object] : informer.objects()) {
        if (api::Namespace(*object) == ns) out.push_back(object);
      }
      return out;
    };
  };
  return {[this, ns = std::string(ns)](std::string_view name) {
            return composites_->Get(StrCat(ns, "/", name));
          },
          all(*composites_), all(*gangs_)};
}

// If the gang is a part of a larger one, finds the larger one.
Status PodGrouper::JoinTree(const json::Value& gang, Found& found) const {
  if (composites_ == nullptr) return Status::Ok();
  auto tree = ReadGangTree(gang, GangsIn(api::Namespace(gang)));
  if (!tree.ok()) return tree.status();
  if (!*tree) return Status::Ok();
  found.owner = (*tree)->root;
  found.kind = found.rule->kind = "CompositePodGroup";
  found.api_version = client::resources::kCompositeGangs.ApiVersion();
  found.pod_set = PodSetOfGang(api::Name(gang));
  found.tree = std::move(*tree);
  return Status::Ok();
}

// Whether a rule may be about it: by its nearest owner, or by what it says itself.
bool PodGrouper::Concerns(const json::Value& pod) const {
  if (api::HasEnded(pod) || api::IsDeleting(pod) ||
      !api::Label(pod, api::keys::kPodGroup).empty()) {
    return false;
  }
  const std::string_view scheduler = api::SchedulerName(pod);
  if (std::find(options_.scheduler_names.begin(), options_.scheduler_names.end(), scheduler) ==
      options_.scheduler_names.end()) {
    return false;
  }
  std::string_view named;
  if (rules_.Named(pod, named) != nullptr) return true;
  const auto owner = api::ControllerOf(pod);
  // Before people's rules are read, they may be about anything.
  return owner && (!map_read_ || rules_.Knows(owner->api_version, owner->kind));
}

bool PodGrouper::Holds(const json::Value& pod) const {
  return !api::IsBound(pod) && Concerns(pod) && !ungrouped_.contains(std::string(api::Uid(pod)));
}

void PodGrouper::Reread(const std::string& group) {
  if (groups_.Get(group)) queue_.Add(StrCat(kGroupKey, group));
}

void PodGrouper::OnPod(const json::Value& pod) {
  if (map_read_ && Holds(pod)) queue_.Add(api::KeyOf(pod));
}

void PodGrouper::OnPodGone(const json::Value& pod) {
  ungrouped_.erase(std::string(api::Uid(pod)));
  if (api::Annotation(pod, kGroupedBy).empty()) return;
  queue_.Add(StrCat(kGroupKey, api::Namespace(pod), "/", api::Label(pod, api::keys::kPodGroup)));
}

// While its owner was asked for, the pod may have been bound, or gone: it is told as it is now.
void PodGrouper::MarkUngrouped(const json::Value& looked_at) {
  const json::SharedValue pod = pods_.Get(api::KeyOf(looked_at));
  if (!pod || api::Uid(*pod) != api::Uid(looked_at)) return;
  ungrouped_.insert(std::string(api::Uid(*pod)));
  if (options_.release) options_.release(*pod);
}

void PodGrouper::Reconcile(const std::string& key, const client::WorkQueue::Done& done) {
  if (key.starts_with(kGroupKey)) {
    return ReconcileGroup(key.substr(kGroupKey.size()), done);
  }
  json::SharedValue pod = pods_.Get(key);
  if (!pod || !(api::IsBound(*pod) ? Concerns(*pod) : Holds(*pod))) return done(Duration::zero());
  FindOwner(pod, false, [this, pod, done](const Result<Found>& found) {
    if (!found.ok()) return done(found.status());
    if (!found->rule || !MayGroup(*found->rule, *pod)) {
      MarkUngrouped(*pod);
      return done(Duration::zero());
    }
    Group(pod, *found, done);
  });
}

bool PodGrouper::MayGroup(const GroupingRule& rule, const json::Value& pod) const {
  if (rule.only_with_gpus) {
    const json::Value* spec = json::Find(pod, {"spec"});
    const sched::PodInfo info = sched_inputs::ToPodInfo(pod);
    const bool part = info.gpu_fraction > 0 || info.gpu_memory_mib > 0 || api::HasDeviceClaims(pod);
    if (!part && (spec == nullptr ||
                  !sched_inputs::PodRequests(*spec).extended.contains(sched::kGpuResource))) {
      return false;
    }
  }
  if (!rule.only_in_projects || !api::Label(pod, api::keys::kProject).empty()) return true;
  const auto& projects = projects_.objects();
  return std::any_of(projects.begin(), projects.end(), [&](const auto& named) {
    return api::NamespaceOfProject(*named.second) == api::Namespace(pod);
  });
}

void PodGrouper::FindOwner(const json::SharedValue& pod,
                           bool fresh,
                           std::function<void(const Result<Found>&)> done) {
  auto walk = std::make_shared<Walk>();
  walk->fresh = fresh;
  walk->pod = pod;
  walk->done = std::move(done);
  std::string_view named;
  if (const GroupingRule* rule = rules_.Named(*pod, named)) {
    const client::Resource resource{rule->group, rule->version, rule->resource, true};
    walk->found = {*rule, nullptr, resource.ApiVersion(), rule->kind};
    return Fetch(resource, std::string(api::Namespace(*pod)), std::string(named), fresh,
                 [this, walk](const Result<json::SharedValue>& object) {
                   // Until it is there, who belongs to it waits.
                   if (object.status().code() == Code::kNotFound) ReportMissing(*walk);
                   if (!object.ok()) return walk->done(object.status());
                   walk->found.owner = *object;
                   if (walk->found.rule->name == kGangRule) {
                     const Status joined = JoinTree(**object, walk->found);
                     if (!joined.ok()) {
                       ReportWaiting(*walk->pod, joined.message());
                       return walk->done(joined);
                     }
                   }
                   walk->done(walk->found);
                 });
  }
  walk->next = api::ControllerOf(*pod);
  Climb(walk);
}

// The owner may never come, so the pod gets the reason that the scheduler would otherwise write.
void PodGrouper::ReportMissing(const Walk& walk) {
  const json::Value& pod = *walk.pod;
  const GroupingRule& rule = *walk.found.rule;
  std::string_view name;
  rules_.Named(pod, name);
  const std::string message = StrCat("waits for its ", rule.kind, ".", rule.group, " ", Quote(name),
                                     ", which is not there; it is named by the pod's ",
                                     !rule.pod_field.empty()  ? ""
                                     : rule.pod_label.empty() ? "annotation "
                                                              : "label ",
                                     rule.pod_label, rule.pod_annotation, rule.pod_field);
  ReportWaiting(pod, message);
}

void PodGrouper::ReportWaiting(const json::Value& pod, const std::string& message) {
  if (api::IsBound(pod)) return;
  const std::optional<api::Condition> known = api::FindCondition(pod, "PodScheduled");
  if (known && known->message == message) return;
  events_.Record(pod, "Warning", "FailedScheduling", message);
  json::Array conditions;
  if (known) conditions.push_back(*known->document);
  // Not "Unschedulable": more nodes would not help.
  api::SetCondition(conditions, "PodScheduled", "False", "GroupMissing", message,
                    context_.clock.Now());
  client_.Patch(
      client::resources::kPods, api::Namespace(pod), api::Name(pod), client::PatchType::kStrategic,
      json::Object{{"metadata", json::Object{{"uid", api::Uid(pod)}}},
                   {"status", json::Object{{"conditions", std::move(conditions)}}}},
      [](const Result<json::SharedValue>&) {}, "status");
}

void PodGrouper::Climb(const WalkPtr& walk) {
  const auto resource = walk->next && walk->steps < kOwnersMax
                            ? rules_.Knows(walk->next->api_version, walk->next->kind)
                            : std::nullopt;
  if (!resource) return walk->done(walk->found);
  ++walk->steps;
  Fetch(*resource, std::string(api::Namespace(*walk->pod)), walk->next->name, walk->fresh,
        [this, walk](const Result<json::SharedValue>& object) {
          const api::OwnerReference& next = *walk->next;
          const bool gone = object.ok() ? api::Uid(**object) != next.uid
                                        : object.status().code() == Code::kNotFound;
          // What was read a moment ago may be an earlier one of that name, which was made anew.
          if (gone && !std::exchange(walk->fresh, true)) return Climb(walk);
          if (gone) return walk->done(walk->found);
          if (!object.ok()) return walk->done(object.status());
          if (const GroupingRule* rule = rules_.For(next.api_version, next.kind, **object)) {
            walk->found = {*rule, *object, next.api_version, next.kind};
          }
          walk->next = api::ControllerOf(**object);
          Climb(walk);
        });
}

void PodGrouper::Fetch(const client::Resource& resource,
                       const std::string& ns,
                       const std::string& name,
                       bool fresh,
                       Fetched done) {
  const std::string path = resource.Path(ns, name);
  const SteadyTime now = context_.clock.Steady();
  if (cache_.size() > kCachedMax) {
    std::erase_if(cache_, [now](const auto& entry) {
      return entry.second.waiting.empty() && entry.second.until <= now;
    });
  }
  Cached& cached = cache_[path];
  if (!cached.waiting.empty()) return cached.waiting.push_back(std::move(done));
  if (!fresh && cached.object && now < cached.until) return done(cached.object);
  cached.waiting.push_back(std::move(done));
  client_.Get(resource, ns, name, [this, path](const Result<json::SharedValue>& object) {
    auto entry = cache_.find(path);
    if (entry == cache_.end()) return;
    auto waiting = std::exchange(entry->second.waiting, {});
    entry->second.object = object.ok() ? *object : nullptr;
    entry->second.until = context_.clock.Steady() + kFresh;
    if (!object.ok()) cache_.erase(entry);
    for (const Fetched& one : waiting) one(object);
  });
}

void PodGrouper::Group(const json::SharedValue& pod,
                       const Found& found,
                       const client::WorkQueue::Done& done) {
  const std::string ns(api::Namespace(*pod));
  const std::string group = GroupNameOf(*found.rule, *found.owner, *pod);
  const std::string set = found.tree ? found.pod_set : PodSetOf(*found.rule, *found.owner, *pod);
  const std::string rule = found.rule->name, owner(api::Uid(*found.owner));
  // The group first: a label whose group nobody made would make one of its own.
  WriteGroup(ns, group, *pod, found, [=, this](const Status& written) {
    if (!written.ok()) return done(written);
    const json::Value patch = json::Object{
        {"metadata",
         json::Object{
             {"uid", api::Uid(*pod)},
             {"labels", json::Object{{api::keys::kPodGroup, group}, {api::keys::kPodSet, set}}},
             {"annotations", json::Object{{kGroupedBy, rule}, {api::keys::kGroupOwner, owner}}}}}};
    client_.Patch(client::resources::kPods, ns, api::Name(*pod), client::PatchType::kMerge, patch,
                  [done](const Result<json::SharedValue>& result) {
                    const bool fine = result.ok() || Gone(result.status().code());
                    done(fine ? Result<Duration>(Duration::zero()) : result.status());
                  });
  });
}

void PodGrouper::WriteGroup(const std::string& ns,
                            const std::string& name,
                            const json::Value& pod,
                            const Found& found,
                            const std::function<void(const Status&)>& done) {
  json::Object spec = GroupSpecOf(*found.rule, *found.owner, pod, [this](std::string_view project) {
    return projects_.Get(project) != nullptr;
  });
  if (found.tree) {
    spec["podSets"] = found.tree->pod_sets;
    spec["groups"] = found.tree->groups;
  }
  auto ended = [done](const Result<json::SharedValue>& result) {
    const Code code = result.status().code();
    done(result.ok() || code == Code::kAlreadyExists ? Status::Ok() : result.status());
  };
  json::SharedValue known = groups_.Get(StrCat(ns, "/", name));
  if (known) {
    // What people changed in it stays; what the owner says of numbers counts.
    const json::Value* sets = json::Find(*known, {"spec", "podSets"});
    const bool ours = !api::Annotation(*known, kGroupedBy).empty();
    if (!ours || (sets != nullptr && json::Equal(*sets, spec["podSets"]))) {
      return done(Status::Ok());
    }
    json::Object changed{{"podSets", spec["podSets"]}};
    if (found.tree) changed["groups"] = spec["groups"];
    const json::Value patch = json::Object{{"spec", std::move(changed)}};
    return client_.Patch(client::resources::kPodGroups, ns, name, client::PatchType::kMerge, patch,
                         ended);
  }
  // A group of one pod goes with it, others with what they are about.
  json::Value owner = found.rule->per_pod ? pod : *found.owner;
  json::Set(owner, {"apiVersion"}, found.rule->per_pod ? "v1" : found.api_version);
  json::Set(owner, {"kind"}, found.rule->per_pod ? "Pod" : found.kind);
  const json::Value group = json::Object{
      {"apiVersion", "swell.dev/v1"},
      {"kind", "PodGroup"},
      {"metadata",
       json::Object{{"name", name},
                    {"namespace", ns},
                    {"annotations", json::Object{{kGroupedBy, found.rule->name}}},
                    {"ownerReferences", json::Array{api::MakeOwnerReference(owner, false)}}}},
      {"spec", std::move(spec)}};
  if (!found.rule->per_pod) NotePlaced(pod);
  client_.Create(client::resources::kPodGroups, ns, group, ended);
}

// Pods that were placed before there was a rule for them would else be missed by the others.
void PodGrouper::NotePlaced(const json::Value& member) {
  const auto owner = api::ControllerOf(member);
  if (!owner) return;
  for (const json::SharedValue& pod : pods_.ByIndex("owner", owner->uid)) {
    if (api::IsBound(*pod) && Concerns(*pod)) queue_.Add(api::KeyOf(*pod));
  }
}

// Pods have gone, or the group has.
void PodGrouper::ReconcileGroup(const std::string& key, const client::WorkQueue::Done& done) {
  json::SharedValue group = groups_.Get(key);
  std::vector<json::SharedValue> pods = pods_.ByIndex("group", key);
  std::erase_if(pods, [](const json::SharedValue& pod) {
    return api::Annotation(*pod, kGroupedBy).empty() || api::IsDeleting(*pod);
  });
  const std::string ns = key.substr(0, key.find('/')), name = key.substr(key.find('/') + 1);
  auto fine = [done](const Status& status) {
    done(status.ok() || Gone(status.code()) ? Result<Duration>(Duration::zero()) : status);
  };
  if (pods.empty()) {
    const bool ours = group && !api::Annotation(*group, kGroupedBy).empty();
    if (!ours || !pods_.ByIndex("group", key).empty()) return done(Duration::zero());
    const Duration stays = PreemptedStays(*group, context_.clock.Now());
    if (stays > Duration::zero()) return done(stays);
    return client_.Delete(
        client::resources::kPodGroups, ns, name,
        {.precondition_uid = std::string(api::Uid(*group))},
        [fine](const Result<json::SharedValue>& result) { fine(result.status()); });
  }
  const json::SharedValue pod = pods.front();
  FindOwner(pod, true, [=, this](const Result<Found>& found) {
    if (!found.ok()) return fine(found.status());
    if (!found->rule) return done(Duration::zero());
    WriteGroup(ns, name, *pod, *found, fine);
  });
}

void PodGrouper::ReadMap() {
  client_.Get(client::resources::kConfigMaps, options_.ns, kGroupingMap,
              [this](const Result<json::SharedValue>& map) {
                static const json::Value kNone = json::Object{};
                const bool first = !std::exchange(map_read_, true);
                // One that can not be read for now changes nothing.
                if (map.ok()) OnMap(**map);
                if (map.status().code() == Code::kNotFound) OnMap(kNone);
                if (first) RegroupWaitingPods();
                timer_.Start(options_.look_every, [this] { ReadMap(); });
              });
}

void PodGrouper::OnMap(const json::Value& map) {
  const std::string version(api::ResourceVersionText(map));
  if (version == map_version_) return;
  map_version_ = version;
  const std::string_view text = json::GetString(map, {"data", kGroupingKey});
  GroupingRules::Read read;
  if (!text.empty()) read = GroupingRules::Parse(text);
  if (text.empty() && !version.empty()) {
    read.faults.push_back(StrCat("data.", kGroupingKey, ": Required value"));
  }
  for (const std::string& fault : read.faults) {
    SWELL_LOG_WARNING("pod-grouper", "a grouping rule is left out",
                      {"configmap", StrCat(options_.ns, "/", kGroupingMap)}, {"because", fault});
    events_.Record(map, "Warning", "InvalidGroupingRule", fault);
  }
  std::vector<GroupingRule> rules = std::move(read.rules);
  rules.insert(rules.end(), options_.rules.begin(), options_.rules.end());
  rules_.Extend(std::move(rules));
  RegroupWaitingPods();
}

// With other rules a waiting pod may belong to another group, or to no group.
void PodGrouper::RegroupWaitingPods() {
  for (const auto& [key, pod] : pods_.objects()) {
    if (api::IsBound(*pod)) continue;
    ungrouped_.erase(std::string(api::Uid(*pod)));
    if (options_.release) options_.release(*pod);
    OnPod(*pod);
  }
}

}  // namespace swell::scheduling
