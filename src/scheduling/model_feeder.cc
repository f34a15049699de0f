#include "scheduling/model_feeder.h"

#include <optional>
#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/selector.h"
#include "kube/api/objects/failure.h"
#include "kube/api/objects/pod.h"
#include "kube/api/objects/pod_group.h"
#include "kube/api/objects/project.h"
#include "sched_inputs/sched_convert.h"

namespace swell::scheduling {
namespace {

using controllers::Follow;

const client::Resource kTopologies{"swell.dev", "v1", "topologies", false};

}  // namespace

ModelFeeder::ModelFeeder(const controllers::Context& context,
                         sched::Model& model,
                         DeviceClaims& devices,
                         Hooks hooks)
    : clock_(context.clock),
      model_(model),
      devices_(devices),
      hooks_(std::move(hooks)),
      pods_(context.informers.Of(client::resources::kPods)),
      nodes_(context.informers.Of(client::resources::kNodes)),
      groups_(context.informers.Of(client::resources::kPodGroups)),
      priorities_(context.informers.Of(client::resources::kPriorityClasses)),
      projects_(context.informers.Of(client::resources::kProjects)),
      pools_(context.informers.Of(client::resources::kNodePools)),
      topologies_(context.informers.Of(kTopologies)),
      budgets_(context.informers.Of(client::resources::kPodDisruptionBudgets)),
      claims_(context.informers.Of(client::resources::kPersistentVolumeClaims)),
      volumes_(context.informers.Of(client::resources::kPersistentVolumes)),
      classes_(context.informers.Of(client::resources::kStorageClasses)),
      namespaces_(context.informers.Of(client::resources::kNamespaces)),
      selecting_again_(context.executor),
      kept_(context.executor, [this](const std::string& key) { GiveUpRoom(key); }) {}

void ModelFeeder::Watch() {
  WatchNodes();
  WatchQueues();
  WatchGroups();
  WatchPods();
  WatchVolumes();
  WatchNamespaces();
  devices_.Watch({.node_changed =
                      [this](const std::string& name) {
                        if (const auto node = nodes_.Get(name)) OnNode(*node);
                      },
                  .pod_changed = [this](const json::Value& pod) { OnPod(pod); }});
}

template <typename Upsert, typename Remove>
void ModelFeeder::Feed(client::Informer& informer, Upsert upsert, Remove remove) {
  const auto then_changed = [this](auto apply) {
    return [this, apply](const json::SharedValue& object) {
      apply(*object);
      hooks_.changed();
    };
  };
  Follow(informer, then_changed(upsert), then_changed(remove));
}

void ModelFeeder::WatchNodes() {
  nodes_.AddHandlers({.on_add =
                          [this](const json::SharedValue& node) {
                            OnNode(*node);
                            hooks_.changed();
                          },
                      .on_update = [this](const json::SharedValue&,
                                          const json::SharedValue& node) { OnNode(*node); },
                      .on_delete =
                          [this](const json::SharedValue& node) {
                            model_.RemoveNode(api::Name(*node));
                            hooks_.changed();
                          }});
}

void ModelFeeder::OnNode(const json::Value& node) {
  const uint64_t before = model_.version();
  sched::NodeInfo info = sched_inputs::ToNodeInfo(node);
  devices_.AddToNode(info);
  model_.UpsertNode(info);
  if (model_.version() != before) hooks_.changed();
}

void ModelFeeder::WatchGroups() {
  Follow(
      groups_, [this](const json::SharedValue& group) { OnGroup(*group); },
      [this](const json::SharedValue& group) {
        model_.RemoveGroup(api::KeyOf(*group));
        hooks_.changed();
      });
  auto remove = [this](const json::Value& budget) { model_.RemoveBudget(api::KeyOf(budget)); };
  Feed(
      budgets_,
      [this, remove](const json::Value& budget) {
        const std::optional<sched::BudgetInfo> info = sched_inputs::ToBudgetInfo(budget);
        if (!info) return remove(budget);
        model_.UpsertBudget(*info);
      },
      remove);
  auto priority = [this](const json::SharedValue& it) { RefreshGroups(api::Name(*it)); };
  Follow(priorities_, priority, priority);
}

void ModelFeeder::WatchPods() {
  Follow(
      pods_, [this](const json::SharedValue& pod) { OnPod(*pod); },
      [this](const json::SharedValue& pod) {
        const std::string key = api::KeyOf(*pod);
        devices_.OnPodDeleted(*pod);
        selecting_.erase(key);
        if (hooks_.deleted(key) || kept_.Keeps(key, api::Uid(*pod))) return;
        model_.RemovePod(key);
        hooks_.changed();
      });
}

bool ModelFeeder::KeepsRoom(const std::string& key, const json::Value& pod) {
  if (kept_.Keeps(key, api::Uid(pod))) return true;
  if (api::StatusReason(pod) != api::kNodeShutdown || api::Phase(pod) != "Failed") return false;
  const std::string group = api::GroupKeyOf(pod);
  if (group.empty()) return false;
  // One that held no room until now has none to keep; that of a victim is somebody's already.
  const std::optional<sched::Model::PodView> before = model_.Pod(key);
  const bool held = before && (before->phase == sched::PodPhase::kBound ||
                               before->phase == sched::PodPhase::kRunning);
  if (held) kept_.Keep(key, api::Uid(pod), group);
  return held;
}

void ModelFeeder::TakeKeptRoom(const std::string& key, const json::Value& pod) {
  if (kept_.Empty()) return;
  if (!kept_.Keeps(key) && model_.Pod(key)) return;
  const std::string before = kept_.TakeFor(key, api::GroupKeyOf(pod));
  if (!before.empty() && before != key) GiveUpRoom(before);
}

void ModelFeeder::GiveUpRoom(const std::string& key) {
  const json::SharedValue pod = pods_.Get(key);
  if (pod) {
    Tell(*pod);
  } else {
    model_.RemovePod(key);
  }
  hooks_.changed();
}

void ModelFeeder::RefreshPlacedVolumes() {
  for (const auto& [key, pod] : pods_.objects()) {
    const bool placed = api::IsBound(*pod);
    if (placed && api::HasVolumes(*pod)) OnPod(*pod);
  }
}

// When a claim is bound or a volume's nodes change, waiting pods may start, or need other nodes.
void ModelFeeder::WatchVolumes() {
  auto again = [this](const json::SharedValue&) {
    for (const auto& [key, pod] : pods_.objects()) {
      const bool waits = !api::IsBound(*pod);
      if (waits && api::HasVolumes(*pod)) OnPod(*pod);
    }
  };
  for (client::Informer* informer : {&claims_, &volumes_, &classes_}) {
    Follow(*informer, again, again);
  }
}

std::vector<std::string> ModelFeeder::NamespacesWith(const json::Value& selector) const {
  std::vector<const json::Value*> all;
  for (const auto& [name, object] : namespaces_.objects()) all.push_back(object.get());
  return sched_inputs::SelectNamespaces(selector, all);
}

// When labels of namespaces change, pods whose terms select namespaces by labels are read again.
// Those on nodes are among them: their terms keep other pods away.
void ModelFeeder::WatchNamespaces() {
  const auto again = [this] {
    // Namespaces come many at a time, and each pod looks at all of them.
    if (selecting_.empty() || selecting_again_.pending()) return;
    selecting_again_.Start(Duration::zero(), [this] {
      for (const std::string& key : std::set<std::string, std::less<>>(selecting_)) {
        if (const json::SharedValue pod = pods_.Get(key)) OnPod(*pod);
      }
    });
  };
  const auto one = [again](const json::SharedValue&) { again(); };
  const auto changed = [again](const json::SharedValue& was, const json::SharedValue& is) {
    if (api::Labels(*was) != api::Labels(*is)) again();
  };
  namespaces_.AddHandlers({.on_add = one, .on_update = changed, .on_delete = one});
}

void ModelFeeder::OnPod(const json::Value& pod) {
  const std::string key = api::KeyOf(pod);
  const std::string* binding = hooks_.open_binding(key);
  if (binding != nullptr && *binding != api::Uid(pod)) return;
  if (KeepsRoom(key, pod)) return;
  TakeKeptRoom(key, pod);
  Tell(pod);
}

void ModelFeeder::Tell(const json::Value& pod) {
  uint64_t before = model_.version();
  const std::string key = api::KeyOf(pod);
  selecting_.erase(key);
  const auto namespaces = [&](const json::Value& selector) {
    selecting_.insert(key);
    return NamespacesWith(selector);
  };
  sched::PodInfo info =
      sched_inputs::ToPodInfo(pod, ProjectOfNamespace(api::Namespace(pod)), namespaces);
  info.ours = names_.contains(api::SchedulerName(pod));
  auto find = [](const client::Informer& informer) {
    return [&informer](std::string_view key) { return informer.Get(key).get(); };
  };
  auto claims_of = [this](std::string_view ns) {
    std::vector<std::string> names;
    const std::string prefix = StrCat(ns, "/");
    const auto& claims = claims_.objects();
    for (auto it = claims.lower_bound(prefix); it != claims.end(); ++it) {
      if (!it->first.starts_with(prefix)) break;
      names.push_back(it->first.substr(prefix.size()));
    }
    return names;
  };
  sched_inputs::AddVolumeTerms(pod, {find(claims_), find(volumes_), find(classes_), claims_of},
                               info);
  devices_.AddToPod(pod, info);
  if (info.node.empty() && held_ && held_(pod)) {
    info.scheduling_gates.emplace_back("swell.dev/grouping");
  }
  model_.UpsertPod(info);
  if (model_.version() != before) hooks_.changed();
}

void ModelFeeder::OnGroup(const json::Value& pod_group) {
  uint64_t before = model_.version();
  sched::GroupInfo group = sched_inputs::ToGroupInfo(
      pod_group, [this](std::string_view name) { return priorities_.Get(name).get(); },
      ProjectOfNamespace(api::Namespace(pod_group)));
  model_.UpsertGroup(group);
  if (model_.version() != before) hooks_.changed();
}

void ModelFeeder::RefreshGroups(std::string_view priority_class) {
  for (const auto& [key, group] : groups_.objects()) {
    if (api::PriorityClassName(*group) == priority_class) OnGroup(*group);
  }
}

void ModelFeeder::WatchQueues() {
  Feed(
      projects_,
      [this](const json::Value& project) {
        model_.UpsertQueue(sched_inputs::ToQueueInfo(project));
        RefreshProjects();
      },
      [this](const json::Value& project) {
        model_.RemoveQueue(api::Name(project));
        RefreshProjects();
      });
  Feed(
      pools_,
      [this](const json::Value& pool) { model_.UpsertPool(sched_inputs::ToPoolInfo(pool)); },
      [this](const json::Value& pool) { model_.RemovePool(api::Name(pool)); });
  Feed(
      topologies_,
      [this](const json::Value& topology) {
        model_.UpsertTopology(sched_inputs::ToTopologyInfo(topology));
      },
      [this](const json::Value& topology) { model_.RemoveTopology(api::Name(topology)); });
}

void ModelFeeder::RecallPastUse(const sched::Settings& settings) {
  std::vector<sched::PastUse> notes;
  for (const auto& [name, project] : projects_.objects()) {
    std::vector<sched::PastUse> own = sched_inputs::ToPastUse(*project);
    notes.insert(notes.end(), own.begin(), own.end());
  }
  if (!notes.empty()) sched::AddPastUses(model_, settings, notes, clock_.Now());
}

// Only leaf projects have namespaces and workloads; departments do not.
void ModelFeeder::RefreshProjects() {
  std::set<std::string_view> parents;
  for (const auto& [name, project] : projects_.objects()) {
    parents.insert(api::ParentOfProject(*project));
  }
  std::map<std::string, std::string, std::less<>> found;
  for (const auto& [name, project] : projects_.objects()) {
    if (!parents.contains(name))
      found.try_emplace(std::string(api::NamespaceOfProject(*project)), name);
  }
  if (found == project_of_) return;
  project_of_ = std::move(found);
  for (const auto& [key, group] : groups_.objects()) OnGroup(*group);
  for (const auto& [key, pod] : pods_.objects()) OnPod(*pod);
}

std::string_view ModelFeeder::ProjectOfNamespace(std::string_view ns) const {
  auto it = project_of_.find(ns);
  return it == project_of_.end() ? std::string_view() : std::string_view(it->second);
}

}  // namespace swell::scheduling
