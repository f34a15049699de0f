// ModelFeeder: keeps the scheduling model in step with the API's objects.
//
// It watches pods, nodes, PodGroups, projects and all else that decides where a pod may go, and
// turns each into what the model knows of it.
//
// - Threads: core executor only.
// - Ownership: the model and the devices outlive it.
// - Invariants: what a pod held when its node went down stays its group's while KeptRooms keeps it:
//   the model shows that pod as it was. A pod whose binding is open stays in the model until
//   its outcome is known, even if it was deleted, and no later pod of the same name takes its place
//   before that.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/timer.h"
#include "kube/controllers/context.h"
#include "sched/model.h"
#include "sched/scheduler.h"
#include "scheduling/device_claims.h"
#include "scheduling/kept_rooms.h"

namespace swell::scheduling {

class ModelFeeder {
 public:
  struct Hooks {
    std::function<void()> changed;  // the model: it is time for a cycle
    // The uid of the pod of that key whose binding is open; else null.
    std::function<const std::string*(const std::string& key)> open_binding;
    // The pod was deleted. True: the hook takes it out of the model itself, once it may.
    std::function<bool(const std::string& key)> deleted;
  };
  ModelFeeder(const controllers::Context& context,
              sched::Model& model,
              DeviceClaims& devices,
              Hooks hooks);

  // Pods that name one of these schedulers are placed here. Before Watch.
  void Serve(const std::vector<std::string>& names) { names_ = {names.begin(), names.end()}; }
  // Pods for which it returns true wait, as if they had a scheduling gate. Before Watch.
  void HoldWhile(std::function<bool(const json::Value& pod)> held) { held_ = std::move(held); }
  void Watch();
  // Pods that are on nodes may have been read before their volume claims. Once all is in sync.
  void RefreshPlacedVolumes();
  // What the projects had used in the past, as the last scheduler noted it in their statuses.
  void RecallPastUse(const sched::Settings& settings);
  void OnPod(const json::Value& pod);

 private:
  void WatchPods();
  void Tell(const json::Value& pod);
  // The pod ended with its node, and its group keeps its room.
  bool KeepsRoom(const std::string& key, const json::Value& pod);
  // A pod that the model does not know takes over a room that its group keeps.
  void TakeKeptRoom(const std::string& key, const json::Value& pod);
  void GiveUpRoom(const std::string& key);
  void WatchVolumes();
  void WatchNamespaces();
  std::vector<std::string> NamespacesWith(const json::Value& selector) const;
  void WatchNodes();
  void WatchQueues();
  void WatchGroups();
  void OnNode(const json::Value& node);
  void OnGroup(const json::Value& pod_group);
  void RefreshGroups(std::string_view priority_class);
  void RefreshProjects();
  std::string_view ProjectOfNamespace(std::string_view ns) const;
  template <typename Upsert, typename Remove>
  void Feed(client::Informer& informer, Upsert upsert, Remove remove);

  const Clock& clock_;
  sched::Model& model_;
  DeviceClaims& devices_;
  const Hooks hooks_;
  client::Informer& pods_;
  client::Informer& nodes_;
  client::Informer& groups_;
  client::Informer& priorities_;
  client::Informer& projects_;
  client::Informer& pools_;
  client::Informer& topologies_;
  client::Informer& budgets_;
  client::Informer& claims_;
  client::Informer& volumes_;
  client::Informer& classes_;
  client::Informer& namespaces_;
  std::map<std::string, std::string, std::less<>> project_of_;  // namespace → leaf project
  std::set<std::string, std::less<>> selecting_;  // pods whose terms select namespaces by labels
  Timer selecting_again_;
  std::set<std::string, std::less<>> names_{"swell"};
  std::function<bool(const json::Value& pod)> held_;
  KeptRooms kept_;
};

}  // namespace swell::scheduling
