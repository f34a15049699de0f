// PodGrouper: makes gangs of pods that other operators made, by GroupingRules. It finds a pod's
// topmost owner that has a rule. It makes the rule's PodGroup, which that owner owns, and labels
// the pod. From then on the group is like any other for the scheduler, `swell why` and people.
//
// The scheduler holds a pod back while it is not known whether it belongs to a group (Holds). The
// owner is read again whenever pods of the group come and go: a job that shrinks needs fewer. A
// group without pods is deleted; a preempted one only after its operator has made no pods for a
// while.
//
// People write rules into key rules.yaml of the ConfigMap `namespace`/swell-grouping, which is read
// from time to time. A rule with a fault is left out, and an event of the ConfigMap and the log
// name rule and field.
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
  // Tells the scheduler that the pod is no longer held.
  std::function<void(const json::Value& pod)> release;
};

class PodGrouper {
 public:
  PodGrouper(controllers::Context context, PodGrouperOptions options);

  // Reads the group's owner again, because the group changed.
  void Reread(const std::string& group);
  // True while it is not known in which group the pod is.
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
