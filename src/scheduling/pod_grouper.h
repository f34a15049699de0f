// PodGrouper: makes gangs of pods that other operators made, by GroupingRules. It finds a pod's
// owners up to the topmost one that has a rule, makes the PodGroup that the rule says, owned by
// that owner, and labels the pod, so that scheduler, `swell why` and people see it as any other.
//
// Until it is known whether a pod belongs to a group, the scheduler leaves it where it is (Holds).
// What a rule reads of an owner is read again when pods of the group come and go: a job that is
// made smaller needs fewer. A group without pods goes; one that was preempted only when its
// operator has made none for a while.
//
// People's rules are in a ConfigMap, looked at from time to time: key rules.yaml of
// `namespace`/swell-grouping. What is wrong with them is told in events of the ConfigMap and in the
// log, by rule and field; the other rules hold.
//
// - Threads: core executor only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/callback_scope.h"
#include "base/timer.h"
#include "kube/client/event_recorder.h"
#include "kube/client/work_queue.h"
#include "kube/controllers/context.h"
#include "scheduling/gang_tree.h"
#include "scheduling/grouping_rules.h"

namespace swell::scheduling {

inline constexpr std::string_view kGroupingMap = "swell-grouping";
inline constexpr std::string_view kGroupingKey = "rules.yaml";
// The rule that a group or pod was grouped by.
inline constexpr std::string_view kGroupedBy = "swell.dev/grouped-by";

struct PodGrouperOptions {
  std::vector<std::string> scheduler_names = {"swell"};
  std::string ns;                                  // of the ConfigMap; empty: it is not read
  std::vector<GroupingRule> rules;                 // from a file; the ConfigMap's come before them
  Duration look_every = std::chrono::seconds(10);  // at the ConfigMap
  // Looked at again by the scheduler: it is held no more.
  std::function<void(const json::Value& pod)> release;
};

class PodGrouper {
 public:
  PodGrouper(controllers::Context context, PodGrouperOptions options);

  // What the group is about has changed: its owner is read again.
  void Reread(const std::string& group);
  // Whether it is not known yet what group the pod is in.
  bool Holds(const json::Value& pod) const;

 private:
  struct Found {
    std::optional<GroupingRule> rule;  // as it was: rules may change meanwhile
    json::SharedValue owner;
    std::string api_version, kind;
    std::optional<GangTree> tree;  // of Kubernetes' composite groups
    std::string pod_set;           // in it
  };
  struct Walk;  // from a pod up to its owners
  using WalkPtr = std::shared_ptr<Walk>;
  using Fetched = std::function<void(const Result<json::SharedValue>&)>;

  bool Concerns(const json::Value& pod) const;
  void OnPod(const json::Value& pod);
  void OnPodGone(const json::Value& pod);
  void Reconcile(const std::string& key, const client::WorkQueue::Done& done);
  void ReconcileGroup(const std::string& key, const client::WorkQueue::Done& done);
  void FindOwner(const json::SharedValue& pod,
                 bool fresh,
                 std::function<void(const Result<Found>&)> done);
  void ReportMissing(const Walk& walk);
  void ReportWaiting(const json::Value& pod, const std::string& message);
  void FollowTrees();
  void OnTree(const json::Value& gang);
  GangObjects GangsIn(std::string_view ns) const;
  Status JoinTree(const json::Value& gang, Found& found) const;
  void Climb(const WalkPtr& walk);
  void Fetch(const client::Resource& resource,
             const std::string& ns,
             const std::string& name,
             bool fresh,
             Fetched done);
  bool MayGroup(const GroupingRule& rule, const json::Value& pod) const;
  void Group(const json::SharedValue& pod, const Found& found, const client::WorkQueue::Done& done);
  void WriteGroup(const std::string& ns,
                  const std::string& name,
                  const json::Value& pod,
                  const Found& found,
                  const std::function<void(const Status&)>& done);
  void NotePlaced(const json::Value& member);
  void MarkUngrouped(const json::Value& looked_at);
  void ReadMap();
  void OnMap(const json::Value& map);
  void RegroupWaitingPods();

  controllers::Context context_;
  PodGrouperOptions options_;
  GroupingRules rules_;
  client::Informer& pods_;
  client::Informer& groups_;
  client::Informer& projects_;
  // Kubernetes' gangs and groups of them; null where the cluster does not serve both.
  client::Informer* gangs_ = nullptr;
  client::Informer* composites_ = nullptr;
  client::EventRecorder events_;
  std::set<std::string> ungrouped_;  // uids of pods that are in no group
  struct Cached {
    SteadyTime until;
    json::SharedValue object;
    std::vector<Fetched> waiting;
  };
  std::map<std::string, Cached> cache_;  // by the object's path
  std::string map_version_;
  bool map_read_ = false;  // or it is missing
  Timer timer_{context_.executor};
  client::WorkQueue queue_;
  client::Client client_;
  CallbackScope scope_;
};

}  // namespace swell::scheduling
