// What the scheduler is told about a cluster: plain values, as the API objects say it.
//
// These are the only types of this layer that carry names; the Model interns them on the way in.
//
// - Threads: plain values.
// - Ownership: by value. Nothing here is trusted: the Model clamps negative amounts and ignores
//   references to objects that do not exist.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "goodput/curve.h"

namespace swell::sched {

using Labels = std::map<std::string, std::string>;

inline constexpr const char* kGpuResource = "nvidia.com/gpu";
inline constexpr int64_t kUnlimited = -1;

// Amounts by resource. `extended` holds everything but the first four, nvidia.com/gpu included.
struct Resources {
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;
  int64_t ephemeral_bytes = 0;
  int64_t pods = 0;  // of a node; a pod always takes one
  std::map<std::string, int64_t> extended;
  bool operator==(const Resources&) const = default;
};

enum class TaintEffect { kNoSchedule, kPreferNoSchedule, kNoExecute };

struct Taint {
  std::string key;
  std::string value;
  TaintEffect effect = TaintEffect::kNoSchedule;
  bool operator==(const Taint&) const = default;
};

struct Toleration {
  std::string key;      // empty with exists: every taint
  bool exists = false;  // operator Exists; else Equal
  std::string value;
  std::optional<TaintEffect> effect;  // empty: every effect
  bool operator==(const Toleration&) const = default;
};

enum class SelectorOp { kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt };

struct Requirement {
  std::string key;
  SelectorOp op = SelectorOp::kIn;
  std::vector<std::string> values;
  bool operator==(const Requirement&) const = default;
};

// All requirements of a term must hold. `fields` knows metadata.name only, as Kubernetes does.
struct NodeSelectorTerm {
  std::vector<Requirement> expressions;
  std::vector<Requirement> fields;
  bool operator==(const NodeSelectorTerm&) const = default;
};

struct PreferredNodeTerm {
  int32_t weight = 1;
  NodeSelectorTerm term;
  bool operator==(const PreferredNodeTerm&) const = default;
};

// Pods by label (matchLabels are written as In with one value); no requirements: every pod.
struct PodAffinityTerm {
  std::vector<Requirement> selector;
  std::vector<std::string> namespaces;  // empty: the pod's own
  bool all_namespaces = false;
  std::string topology_key;
  int32_t weight = 0;  // of preferred terms
  bool operator==(const PodAffinityTerm&) const = default;
};

struct SpreadConstraint {
  int32_t max_skew = 1;
  std::string topology_key;
  bool required = true;  // DoNotSchedule; else ScheduleAnyway
  std::vector<Requirement> selector;
  int32_t min_domains = 1;      // with fewer domains, the least count is 0
  bool honors_affinity = true;  // leaves out nodes that the pod does not select
  bool honors_taints = false;   // and those with taints that it does not tolerate
  bool operator==(const SpreadConstraint&) const = default;
};

struct HostPort {
  std::string protocol = "TCP";
  std::string host_ip;  // empty: 0.0.0.0
  int32_t port = 0;
  bool operator==(const HostPort&) const = default;
};

struct NodeInfo {
  std::string name;
  Labels labels;
  std::vector<Taint> taints;
  Resources allocatable;
  bool unschedulable = false;
  bool ready = true;
  int64_t gpu_memory_mib = 0;  // of each GPU; 0: unknown
  bool gpus_sliced = false;    // GPUs are divided by MIG: nobody else shares them
  bool operator==(const NodeInfo&) const = default;
};

enum class PodPhase { kPending, kBound, kRunning, kReleasing, kSucceeded, kFailed };

struct PodInfo {
  std::string key;  // "namespace/name"
  std::string uid;
  Labels labels;
  std::string group;    // PodGroup's "namespace/name"; empty: a group of its own
  std::string pod_set;  // of the group; empty: its first
  std::string queue;    // project of a pod without a group
  std::string user;     // whose work it is; empty: nobody says
  Resources requests;   // `pods` is ignored
  Labels node_selector;
  std::vector<NodeSelectorTerm> required_node_affinity;  // one of them; empty: no constraint
  std::vector<PreferredNodeTerm> preferred_node_affinity;
  // For each volume, the nodes on which it can be used: any of its terms must match.
  std::vector<std::vector<NodeSelectorTerm>> volume_affinity;
  std::vector<Toleration> tolerations;
  std::vector<HostPort> host_ports;
  std::vector<PodAffinityTerm> required_affinity;
  std::vector<PodAffinityTerm> required_anti_affinity;
  std::vector<PodAffinityTerm> preferred_affinity;
  std::vector<PodAffinityTerm> preferred_anti_affinity;
  std::vector<SpreadConstraint> spread;
  std::vector<std::string> scheduling_gates;
  // Why it can start nowhere yet, whatever room there is: a claim that is not there. Empty: it can.
  std::string obstacle;
  bool may_preempt = true;  // preemptionPolicy: else it takes only what is free
  bool comes_back = true;   // somebody makes it anew when it was stopped; else it is never moved
  int32_t priority = 0;     // of a pod without a group
  bool preemptible = true;  // of a pod without a group
  std::string node;         // bound to; empty: not bound
  std::string nominated_node;
  PodPhase phase = PodPhase::kPending;
  WallTime creation;
  WallTime start;                 // zero: not started
  WallTime checkpoint;            // of the last checkpoint; zero: none, work counts from `start`
  double restart_cost_gpu_s = 0;  // hint: added to the work lost when it is stopped
  Duration max_runtime{0};        // it ends by itself that long after its start; zero: no limit
  bool ours = true;               // schedulerName swell; others only take room
  std::vector<int> gpu_devices;   // indices on `node`, where known
  double gpu_fraction = 0;        // part of one GPU; 0: whole GPUs by `requests`
  int64_t gpu_memory_mib = 0;     // instead of a fraction
  int32_t gpu_fraction_devices = 1;
  std::optional<int32_t> member_priority;  // higher: placed earlier, given up later
};

struct TopologyConstraint {
  std::string name;       // of a Topology
  std::string required;   // node label key; empty: none
  std::string preferred;  // node label key; empty: none
  bool operator==(const TopologyConstraint&) const = default;
};

struct SubGroup {
  std::string name;
  std::string parent;  // empty: directly in the pod group
  TopologyConstraint topology;
  bool operator==(const SubGroup&) const = default;
};

struct PodSet {
  std::string name;
  int32_t min_member = 1;
  std::string parent;  // a SubGroup; empty: directly in the pod group
  TopologyConstraint topology;
  bool operator==(const PodSet&) const = default;
};

// What is stopped when the group must give room and has no surplus left.
enum class PreemptUnit {
  kGang,  // the whole group: a rigid gang is of no use half alive
  kPod,   // only the pods whose place is needed; the job's controller deals with the rest
};

enum class OnPreemption { kRequeue, kFail };

inline constexpr Duration kResizeCostUnknown = std::chrono::seconds(10);

// What an elastic group would make of more members, as its autoscaler measured it.
struct GoodputInfo {
  std::string pod_set;                     // whose members count; empty: the first set's
  std::vector<goodput::CurvePoint> curve;  // empty: not known, or nobody asked
  int32_t measured_at = 0;                 // the size that was measured last; 0: none
  // For how long training stands still while members change; empty: not measured yet.
  std::optional<Duration> resize_cost;
  bool operator==(const GoodputInfo&) const = default;
};

struct GroupInfo {
  std::string key;  // "namespace/name"
  std::string uid;
  std::string queue;  // project; empty: the default queue
  int32_t priority = 0;
  std::string priority_class;
  bool preemptible = true;
  bool may_preempt = true;  // preemptionPolicy of its class
  WallTime creation;
  std::vector<SubGroup> groups;
  std::vector<PodSet> pod_sets;  // empty: one set, minimum 1
  TopologyConstraint topology;
  OnPreemption on_preemption = OnPreemption::kRequeue;
  PreemptUnit preempt_unit = PreemptUnit::kGang;
  Duration min_runtime{0};  // not stopped before it ran this long; surplus is never protected
  WallTime stale_since;     // since when it runs below a minimum; zero: not, or not noticed
  WallTime moved_at;        // when it was last moved, or others for it; zero: never
  GoodputInfo goodput;
  bool operator==(const GroupInfo&) const = default;
};

// A disruption budget: so many of the pods it covers may be stopped.
struct BudgetInfo {
  std::string key;                    // "namespace/name"; it covers pods of its namespace
  std::vector<Requirement> selector;  // no requirements: all of them
  int32_t allowed = 0;
  bool operator==(const BudgetInfo&) const = default;
};

// Shares of one resource, in GPUs (fractions allowed), cores or bytes; -1 means unlimited.
struct QueueLimits {
  double quota = kUnlimited;
  double limit = kUnlimited;
  double weight = 1;
  double lending_limit = kUnlimited;  // of the quota, what others may use while it is idle
  bool operator==(const QueueLimits&) const = default;
};

// A queue's part of one node pool.
struct QueuePoolInfo {
  std::string pool;
  QueueLimits gpu;
  QueueLimits cpu;
  QueueLimits memory;
  bool operator==(const QueuePoolInfo&) const = default;
};

struct QueueInfo {
  std::string name;
  std::string parent;  // empty: a root
  int32_t priority = 100;
  // Shares of the default pool (the one named "default" and nodes in no pool); of every pool if the
  // queue lists none.
  QueueLimits gpu;
  QueueLimits cpu;
  QueueLimits memory;
  // In the order of preference. A queue that lists pools runs in no others: to use idle nodes of
  // another pool, it lists that pool with a quota of 0.
  std::vector<QueuePoolInfo> pools;
  // Between the people whose work it is: how many GPUs one may hold, in all pools together, and
  // whether who holds less goes first.
  double user_gpu_limit = kUnlimited;
  bool fair_to_users = false;
  WallTime creation;
  std::optional<Duration> preempt_min_runtime;
  std::optional<Duration> reclaim_min_runtime;
  bool operator==(const QueueInfo&) const = default;
};

enum class PlacementStrategy { kPack, kSpread };

struct PoolInfo {
  std::string name;
  Labels node_selector;  // empty: every node
  PlacementStrategy gpu = PlacementStrategy::kPack;
  PlacementStrategy cpu = PlacementStrategy::kPack;
  PlacementStrategy shared_gpu = PlacementStrategy::kPack;
  bool operator==(const PoolInfo&) const = default;
};

struct TopologyInfo {
  std::string name;
  std::vector<std::string> levels;  // node label keys, outermost first
  bool operator==(const TopologyInfo&) const = default;
};

}  // namespace swell::sched
