// SchedulerLoop's first half: what it watches, as the model's inputs.
#include <algorithm>
#include <set>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/selector.h"
#include "sched_inputs/sched_convert.h"
#include "scheduling/scheduler_loop.h"

namespace swell::controllers {

void SchedulerLoop::WatchNodes() {
  nodes_.AddHandlers({.on_add =
                          [this](const json::SharedValue& node) {
                            model_.UpsertNode(ToNodeInfo(*node));
                            Wake();
                          },
                      .on_update =
                          [this](const json::SharedValue&, const json::SharedValue& node) {
                            uint64_t before = model_.version();
                            model_.UpsertNode(ToNodeInfo(*node));
                            if (model_.version() != before) Wake();
                          },
                      .on_delete =
                          [this](const json::SharedValue& node) {
                            model_.RemoveNode(api::Name(*node));
                            Wake();
                          }});
}

void SchedulerLoop::WatchGroups() {
  Follow(
      groups_, [this](const json::SharedValue& group) { OnGroup(*group); },
      [this](const json::SharedValue& group) {
        model_.RemoveGroup(api::KeyOf(*group));
        Wake();
      });
  auto lift = [this](const json::SharedValue& it) {
    model_.RemoveBudget(api::KeyOf(*it));
    Wake();
  };
  auto budget = [this, lift](const json::SharedValue& it) {
    const std::optional<sched::BudgetInfo> info = ToBudgetInfo(*it);
    if (!info) return lift(it);
    model_.UpsertBudget(*info);
    Wake();
  };
  Follow(budgets_, budget, lift);
  auto priority = [this](const json::SharedValue& it) { RefreshGroups(api::Name(*it)); };
  Follow(priorities_, priority, priority);
}

void SchedulerLoop::WatchPods() {
  Follow(
      pods_, [this](const json::SharedValue& pod) { OnPod(*pod); },
      [this](const json::SharedValue& pod) {
        const std::string key = api::KeyOf(*pod);
        if (volume_waits_.GiveUp(key, Status(Code::kNotFound, "the pod is gone"))) return;
        if (binding_.contains(key)) return;
        model_.RemovePod(api::KeyOf(*pod));
        Wake();
      });
}

// What is on a node was looked at before its claims were known, perhaps.
void SchedulerLoop::LookAtPlacedVolumes() {
  for (const auto& [key, pod] : pods_.objects()) {
    const bool placed = !json::GetString(*pod, {"spec", "nodeName"}).empty();
    if (placed && !json::GetArray(*pod, {"spec", "volumes"}).empty()) OnPod(*pod);
  }
}

// A claim that is there or bound now, or a volume whose nodes changed: waiting pods may start, or
// have to go elsewhere.
void SchedulerLoop::WatchVolumes() {
  auto again = [this](const json::SharedValue&) {
    for (const auto& [key, pod] : pods_.objects()) {
      const bool waits = json::GetString(*pod, {"spec", "nodeName"}).empty();
      if (waits && !json::GetArray(*pod, {"spec", "volumes"}).empty()) OnPod(*pod);
    }
  };
  for (client::Informer* informer : {&claims_, &volumes_, &classes_}) {
    Follow(*informer, again, again);
  }
}

void SchedulerLoop::OnPod(const json::Value& pod) {
  auto open = binding_.find(api::KeyOf(pod));
  if (open != binding_.end() && open->second.pod_uid != api::Uid(pod)) return;
  uint64_t before = model_.version();
  sched::PodInfo info = ToPodInfo(pod, ProjectOfNamespace(api::Namespace(pod)));
  info.ours = names_.contains(json::GetString(pod, {"spec", "schedulerName"}));
  auto find = [](const client::Informer& informer) {
    return [&informer](std::string_view key) { return informer.Get(key).get(); };
  };
  AddVolumeTerms(pod, {find(claims_), find(volumes_), find(classes_)}, info);
  if (info.node.empty() && held_ && held_(pod)) {
    info.scheduling_gates.emplace_back("swell.dev/grouping");
  }
  model_.UpsertPod(info);
  if (model_.version() != before) Wake();
}

void SchedulerLoop::OnGroup(const json::Value& pod_group) {
  uint64_t before = model_.version();
  sched::GroupInfo group = ToGroupInfo(
      pod_group, [this](std::string_view name) { return priorities_.Get(name).get(); },
      ProjectOfNamespace(api::Namespace(pod_group)));
  model_.UpsertGroup(group);
  if (model_.version() != before) Wake();
}

void SchedulerLoop::RefreshGroups(std::string_view priority_class) {
  for (const auto& [key, group] : groups_.objects()) {
    if (json::GetString(*group, {"spec", "priorityClassName"}) == priority_class) OnGroup(*group);
  }
}

void SchedulerLoop::WatchQueues() {
  auto project = [this](const json::SharedValue& it) {
    model_.UpsertQueue(ToQueueInfo(*it));
    RefreshProjects();
    Wake();
  };
  Follow(projects_, project, [this](const json::SharedValue& it) {
    model_.RemoveQueue(api::Name(*it));
    RefreshProjects();
    Wake();
  });
  auto pool = [this](const json::SharedValue& it) {
    model_.UpsertPool(ToPoolInfo(*it));
    Wake();
  };
  Follow(pools_, pool, [this](const json::SharedValue& it) {
    model_.RemovePool(api::Name(*it));
    Wake();
  });
  auto topology = [this](const json::SharedValue& it) {
    model_.UpsertTopology(ToTopologyInfo(*it));
    Wake();
  };
  Follow(topologies_, topology, [this](const json::SharedValue& it) {
    model_.RemoveTopology(api::Name(*it));
    Wake();
  });
}

// What the projects' statuses say that they had used when the last scheduler noted it.
void SchedulerLoop::RecallPastUse() {
  std::vector<sched::PastUse> notes;
  for (const auto& [name, project] : projects_.objects()) {
    std::vector<sched::PastUse> own = ToPastUse(*project);
    notes.insert(notes.end(), own.begin(), own.end());
  }
  if (!notes.empty()) {
    sched::AddPastUses(model_, scheduler_.settings(), notes, context_.clock.Now());
  }
}

// A department's name is not a namespace: only leaves have work.
void SchedulerLoop::RefreshProjects() {
  std::set<std::string_view> parents;
  for (const auto& [name, project] : projects_.objects()) {
    parents.insert(json::GetString(*project, {"spec", "parent"}));
  }
  std::map<std::string, std::string, std::less<>> found;
  for (const auto& [name, project] : projects_.objects()) {
    if (!parents.contains(name)) found.try_emplace(std::string(NamespaceOfProject(*project)), name);
  }
  if (found == project_of_) return;
  project_of_ = std::move(found);
  for (const auto& [key, group] : groups_.objects()) OnGroup(*group);
  for (const auto& [key, pod] : pods_.objects()) OnPod(*pod);
}

std::string_view SchedulerLoop::ProjectOfNamespace(std::string_view ns) const {
  auto it = project_of_.find(ns);
  return it == project_of_.end() ? std::string_view() : std::string_view(it->second);
}

}  // namespace swell::controllers
