#include "kube/controllers/cluster/node_lifecycle.h"

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/cluster/node_taints.h"
#include "kube/controllers/eviction.h"
#include "kube/controllers/pod_facts.h"
#include "kube/controllers/queue.h"
#include "kube/controllers/write_batch.h"

namespace swell::controllers {
namespace {

constexpr std::string_view kComponent = "node-controller";
constexpr std::string_view kLeaseNamespace = "kube-node-lease";
constexpr std::array<std::string_view, 4> kConditions = {"Ready", "MemoryPressure", "DiskPressure",
                                                         "PIDPressure"};
// A pod's node may be known a moment later than the pod.
constexpr Duration kUnknownNodeGrace = std::chrono::seconds(40);

}  // namespace

NodeLifecycle::NodeLifecycle(Context context, NodeLifecycleOptions options)
    : context_(context),
      options_(options),
      nodes_(context_.informers.Of(client::resources::kNodes)),
      leases_(context_.informers.Of(client::resources::kLeases)),
      pods_(context_.informers.Of(client::resources::kPods)),
      events_(MakeRecorder(context_, std::string(kComponent))),
      node_queue_(MakeQueue(context_, "nodes", 64, this, &NodeLifecycle::ReconcileNode)),
      pod_queue_(MakeQueue(context_, "node-pods", 256, this, &NodeLifecycle::ReconcilePod)),
      client_(context_.executor, context_.server, context_.user, std::string(kComponent)) {
  WatchNodes();
  auto lease = [this](const json::SharedValue& object) {
    if (api::Namespace(*object) != kLeaseNamespace) return;
    RecordSignal(std::string(api::Name(*object)), &NodeSignals::lease,
                 std::string(json::GetString(*object, {"spec", "renewTime"})));
  };
  Follow(leases_, lease);
  auto pod = [this](const json::SharedValue& object) {
    if (api::IsBound(*object)) {
      pod_queue_.Add(api::KeyOf(*object));
    }
  };
  Follow(pods_, pod);
}

void NodeLifecycle::WatchNodes() {
  auto changed = [this](const json::SharedValue& node) {
    std::string name(api::Name(*node));
    const std::optional<api::Condition> ready = api::FindCondition(*node, "Ready");
    RecordSignal(
        name, &NodeSignals::heartbeat,
        ready ? std::string(json::GetString(*ready->document, {"lastHeartbeatTime"})) : "");
    gone_.erase(name);
    node_queue_.Add(name);
  };
  nodes_.AddHandlers(
      {.on_add = changed,
       .on_update =
           [this, changed](const json::SharedValue& before, const json::SharedValue& node) {
             changed(node);
             if (!json::Equal(Taints(*before), Taints(*node)) ||
                 ReadyStatus(*before) != ReadyStatus(*node)) {
               TouchPodsOf(std::string(api::Name(*node)));
             }
           },
       .on_delete =
           [this](const json::SharedValue& node) {
             signals_.erase(std::string(api::Name(*node)));
             TouchPodsOf(std::string(api::Name(*node)));
           }});
}

void NodeLifecycle::TouchPodsOf(const std::string& node) {
  for (const json::SharedValue& pod : pods_.ByIndex("node", node)) {
    pod_queue_.Add(api::KeyOf(*pod));
  }
}

void NodeLifecycle::RecordSignal(const std::string& node,
                                 std::string NodeSignals::*what,
                                 std::string value) {
  auto [it, fresh] = signals_.try_emplace(node);
  NodeSignals& signals = it->second;
  if (!fresh && signals.*what == value) return;
  signals.*what = std::move(value);
  signals.at = context_.clock.Steady();
  json::SharedValue known = nodes_.Get(node);
  // A node that comes back reports its status. A renewed lease alone changes nothing before that.
  if (known && ReadyStatus(*known) == "Unknown") node_queue_.Add(node);
}

void NodeLifecycle::ReconcileNode(const std::string& name, Done done) {
  json::SharedValue node = nodes_.Get(name);
  if (!node || api::IsDeleting(*node)) return done(Duration::zero());
  auto [it, fresh] = signals_.try_emplace(name);
  if (fresh) it->second.at = context_.clock.Steady();
  Duration silence = context_.clock.Steady() - it->second.at;
  bool lost = silence >= options_.grace;
  Duration requeue_after = lost ? Duration::zero() : options_.grace - silence;
  WallTime now = context_.clock.Now();
  json::Array conditions = json::GetArray(*node, {"status", "conditions"});
  bool conditions_changed = false;
  if (lost) {
    for (std::string_view type : kConditions) {
      bool never = !api::FindCondition(*node, type);
      conditions_changed |= api::SetCondition(
          conditions, type, "Unknown", never ? "NodeStatusNeverUpdated" : "NodeStatusUnknown",
          never ? "Kubelet never posted node status." : "Kubelet stopped posting node status.",
          now);
    }
  }
  std::string_view ready = lost ? "Unknown" : ReadyStatus(*node);
  json::Array taints = WantedTaints(*node, ready, now);
  bool taints_changed = !json::Equal(json::Value(taints), Taints(*node));
  if (!conditions_changed && !taints_changed) return done(requeue_after);
  if (conditions_changed) {
    events_.Record(*node, "Normal", "NodeNotReady",
                   StrCat("Node ", name, " status is now: NodeNotReady"));
  }
  PatchNode(*node, conditions_changed ? json::Value(std::move(conditions)) : json::Value(),
            taints_changed ? json::Value(std::move(taints)) : json::Value(), requeue_after,
            std::move(done));
}

// Null: that part stays as it is. Written with the version that was looked at: the node itself may
// have spoken meanwhile.
void NodeLifecycle::PatchNode(const json::Value& node,
                              json::Value conditions,
                              json::Value taints,
                              Duration requeue_after,
                              Done done) {
  std::string name(api::Name(node));
  auto write_taints = [this, name, taints = std::move(taints), requeue_after,
                       done](std::string_view version) {
    if (taints.is_null()) return done(requeue_after);
    json::Value patch = json::Object{{"metadata", json::Object{{"resourceVersion", version}}},
                                     {"spec", json::Object{{"taints", taints}}}};
    client_.Patch(client::resources::kNodes, "", name, client::PatchType::kMerge, patch,
                  Ends(done, requeue_after));
  };
  std::string_view version = json::GetString(node, {"metadata", "resourceVersion"});
  if (conditions.is_null()) return write_taints(version);
  json::Value patch = json::Object{{"metadata", json::Object{{"resourceVersion", version}}},
                                   {"status", json::Object{{"conditions", std::move(conditions)}}}};
  client_.Patch(
      client::resources::kNodes, "", name, client::PatchType::kMerge, patch,
      [done, write_taints](const Result<json::SharedValue>& result) {
        if (!result.ok()) return done(Outcome(result.status()));
        write_taints(json::GetString(**result, {"metadata", "resourceVersion"}));
      },
      "status");
}

void NodeLifecycle::ReconcilePod(const std::string& key, Done done) {
  json::SharedValue pod = pods_.Get(key);
  std::string name(pod ? api::NodeName(*pod) : "");
  if (name.empty()) return done(Duration::zero());
  json::SharedValue node = nodes_.Get(name);
  if (!node) {
    SteadyTime since = gone_.try_emplace(name, context_.clock.Steady()).first->second;
    Duration left = kUnknownNodeGrace - (context_.clock.Steady() - since);
    if (left.count() > 0) return done(left);
    return RemovePod(pod, StrCat("its node ", name, " does not exist"), std::move(done));
  }
  bool lost = ReadyStatus(*node) == "Unknown";
  WallTime now = context_.clock.Now();
  if (api::IsDeleting(*pod)) {
    if (!lost) return done(Duration::zero());
    WallTime due =
        api::ParseTime(json::GetString(*pod, {"metadata", "deletionTimestamp"})).value_or(now);
    if (due > now) return done(due - now);
    return RemovePod(pod, StrCat("its node ", name, " is lost"), std::move(done));
  }
  if (HasEnded(*pod)) return done(Duration::zero());
  auto allowed = ToleratedFor(*pod, *node, options_.eviction_delay);
  if (!allowed) {
    if (lost && api::ConditionIsTrue(*pod, "Ready")) {
      return MarkNotReady(pod, Duration::zero(), std::move(done));
    }
    return done(Duration::zero());
  }
  if (*allowed <= now) return Evict(pod, done);
  if (lost && api::ConditionIsTrue(*pod, "Ready")) {
    return MarkNotReady(pod, *allowed - now, std::move(done));
  }
  done(*allowed - now);
}

void NodeLifecycle::MarkNotReady(const json::SharedValue& pod, Duration requeue_after, Done done) {
  json::Value patch = json::Object{
      {"metadata", json::Object{{"uid", api::Uid(*pod)}}},
      {"status", json::Object{{"conditions", json::Array{json::Object{
                                                 {"type", "Ready"},
                                                 {"status", "False"},
                                                 {"reason", "NodeNotReady"},
                                                 {"message", "the pod's node is lost"},
                                                 {"lastTransitionTime",
                                                  api::FormatTime(context_.clock.Now())}}}}}}};
  events_.Record(*pod, "Warning", "NodeNotReady", "Node is not ready");
  client_.Patch(client::resources::kPods, api::Namespace(*pod), api::Name(*pod),
                client::PatchType::kStrategic, patch, Ends(std::move(done), requeue_after),
                "status");
}

void NodeLifecycle::Evict(const json::SharedValue& pod, const Done& done) {
  const std::string message =
      StrCat("Taint manager: deleting due to NoExecute taint of node ", api::NodeName(*pod));
  events_.Record(*pod, "Normal", "TaintManagerEviction",
                 StrCat("Marking for deletion Pod ", api::KeyOf(*pod), ": ", message));
  EvictPod(
      client_, pod,
      DisruptionCondition("DeletionByTaintManager", message, api::FormatTime(context_.clock.Now())),
      done);
}

void NodeLifecycle::RemovePod(const json::SharedValue& pod, std::string_view why, Done done) {
  events_.Record(*pod, "Warning", "NodeLost", StrCat("Removing pod ", api::KeyOf(*pod), ": ", why));
  client_.Delete(client::resources::kPods, api::Namespace(*pod), api::Name(*pod),
                 {.grace_seconds = 0, .precondition_uid = std::string(api::Uid(*pod))},
                 [done](const Result<json::SharedValue>& result) {
                   // Finalizers may hold it, and no event would requeue it.
                   done(Outcome(result.status(), result.ok() ? Duration(std::chrono::seconds(30))
                                                             : Duration::zero()));
                 });
}

}  // namespace swell::controllers
