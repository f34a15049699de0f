// State: the Model's insides. Dense arrays by id, with the operations that move pods about.
//
// Two operations change where a pod is: SetPlace (its phase, node and devices) and SetPromise (room
// held for it on a node until terminating pods are gone). Everything derived — room per node, gang
// counts, queue usage, term counts, the node index — follows from them and from nothing else, so
// undoing is doing the opposite (statement.h).
//
// Writers. Between cycles only Model writes (and replay.cc, when it begins). In a cycle:
//   Statement        places and promises, by SetPlace and SetPromise
//   scheduler.cc     cycle; lifts promises and sets hints as a cycle begins and ends
//   decide.cc        assumed, hints; takes back a bind of the same cycle
//   stale_gangs.cc   GroupState::stale_since
//   make_room.cc     GroupState::moved_at
//   reservation.cc   held_nodes, NodeState::held_for and held_until
//   explain.cc       GroupState::reason_hash and summary_hash
//   actions          lists.waiting, which they settle before they read it
//   place.cc         the epochs of Shape at which it fitted nowhere
//   victims.cc       cycle.served
//   disruptions.cc   lists.stopped
//   past_use.cc      past_share, QueuePool::past
// State writes what is derived. Everybody else reads.
//
// - Threads: none.
// - Ownership: Model owns. Lists of pods on a node are in no particular order: what decides
//   anything sorts them first.
// - Invariants: used = Σ of placed pods; releasing = the terminating part of it; promised = Σ of
//   promises; room now = allocatable − used; room in future = allocatable − used + releasing −
//   promised. A bind must fit both, a promise the second.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/huge_pages.h"
#include "sched/state/device_kinds.h"
#include "sched/state/device_set.h"
#include "sched/state/node_index.h"
#include "sched/state/shape.h"
#include "sched/state/terms.h"
#include "sched/state/types.h"
#include "sched/state/waiting_lines.h"

namespace swell::sched {

inline constexpr int kQueueDepthMax = 64;

struct Device {  // small: searches visit tens of thousands
  int32_t used_ppm = 0;
  int32_t releasing_ppm = 0;
  int32_t promised_ppm = 0;
  int64_t FreeNow() const { return kPpm - used_ppm; }
  int64_t FreeInFuture() const { return kPpm - used_ppm + releasing_ppm - promised_ppm; }
  bool IdleNow() const { return used_ppm == 0 && promised_ppm == 0; }
  bool IdleInFuture() const { return used_ppm == releasing_ppm && promised_ppm == 0; }
};

// Nodes a placement may use.
struct NodeFilter {
  int pool = kNone;            // all of them are in this pool; kNone: not known
  std::vector<uint8_t> nodes;  // by NodeId
  std::vector<NodeId> listed;  // the same in name order, where they are few; empty: not listed
  bool operator[](NodeId node) const {
    return static_cast<size_t>(node) < nodes.size() && nodes[node] != 0;
  }
};

// What placing and evicting read comes first, in five cache lines: they visit tens of thousands.
struct alignas(64) NodeState {
  bool present = false;   // else known only because pods name it
  bool has_gpus = false;  // whole ones or MIG slices: kept for pods that need them
  uint32_t version = 0;   // of `info`; never repeats
  int rank = kNone;       // place in name order among present nodes
  int pool = 0;           // index into State::pools
  int gpu_count = 0;      // devices 0 to gpu_count - 1 are usable
  int idle_now = 0;       // devices nobody holds or was promised
  int idle_future = 0;    // the same once terminating pods are gone
  int port_pods = 0;      // pods with host ports, placed or promised
  int64_t free_ppm = 0;   // of its devices in the future, as counted in PoolFacts::free_gpu_ppm
  NodeSlot slot;          // where the index has it
  int releasing_pods = 0;
  int implicit_pods = 0;  // GPU pods whose devices were not said

  std::vector<Device> devices;
  std::vector<PodId> promises;  // promised room here
  int hints = 0;                // pods that name it as their nominated node
  GroupId held_for = kNone;     // a job that waits long may start here; see reservation.cc
  WallTime held_until;          // when all of its nodes are free at the latest; zero: not known

  CoreAmounts allocatable{};
  CoreAmounts used{};
  CoreAmounts releasing{};
  CoreAmounts promised{};
  std::vector<PodId> pods;  // placed here

  std::vector<int64_t> ext_allocatable;  // by interned resource
  std::vector<int64_t> ext_used;
  std::vector<int64_t> ext_releasing;
  std::vector<int64_t> ext_promised;
  std::vector<std::pair<int, DeviceSet>> kinds;  // by interned resource: its devices of that kind
  // Null: its devices do not depend on each other.
  std::shared_ptr<const DeviceCounters> counters;
  NodeInfo info;

  // Null: it has none of that kind.
  const DeviceSet* KindOf(int resource) const {
    for (const auto& [kind, devices] : kinds) {
      if (kind == resource) return &devices;
    }
    return nullptr;
  }

  // Has what placing and evicting read on its way into the cache.
  void Prefetch() const;
};

// What a search for victims reads comes first, in two cache lines, then what a decision says of it.
struct alignas(64) PodState {
  GroupId group = kNone;
  int32_t set = 0;  // index into GroupState::sets
  ShapeId shape = kNone;
  LabelSetId labels = kNone;
  PodPhase phase = PodPhase::kPending;
  NodeId node = kNone;
  int32_t node_pos = kNone;  // in NodeState::pods
  NodeId promise = kNone;
  DeviceSet devices;
  DeviceSet promise_devices;

  QueueAmounts charge{};  // of its queue: used where it is placed or promised, else asked
  int32_t charge_pool = kNone;
  NodeId hint = kNone;  // where it was promised room before this cycle
  WallTime start;
  WallTime checkpoint;
  double restart_cost_gpu_s = 0;
  bool ours = true;
  bool gated = false;
  bool blocked = false;  // there is an obstacle
  bool implicit_devices = false;
  bool assumed = false;  // place differs from what the watch said
  bool stopped = false;  // by a decision that the budgets over it may not have seen
  PodPhase seen_phase = PodPhase::kPending;

  std::string key;  // empty: free record
  std::string uid;

  WallTime creation;
  int64_t member_priority = 0;
  Duration max_runtime{0};  // zero: none
  NodeId seen_node = kNone;
  DeviceSet seen_devices;
  std::string pod_set;  // as said; resolved when the group is known
  std::string obstacle;
  bool may_preempt = true;
  bool comes_back = true;

  bool Placed() const {
    return node != kNone && (phase == PodPhase::kBound || phase == PodPhase::kRunning ||
                             phase == PodPhase::kReleasing);
  }
  bool Holds() const { return Placed() && phase != PodPhase::kReleasing; }
  // In which a placed pod counts on its node.
  Presence PresenceThere() const {
    return phase == PodPhase::kReleasing ? Presence::kNowOnly : Presence::kNowAndFuture;
  }
  bool Waits() const {
    return ours && !gated && !blocked && phase == PodPhase::kPending && promise == kNone;
  }
};

struct SetState {
  int32_t min_member = 1;
  int32_t holding = 0;  // placed and not terminating
  int32_t releasing = 0;
  int32_t moving = 0;    // of the releasing: promised another place
  int32_t promised = 0;  // promised and not placed
  int32_t pending = 0;   // could be placed now: not gated, not blocked, no promise
  int32_t gated = 0;
  int32_t blocked = 0;
  int32_t succeeded = 0;
  int32_t subgroup = kNone;
  std::string name;
  TopologyConstraint topology;

  // Members that finished their work need not run again.
  int32_t Minimum() const { return std::max(0, min_member - succeeded); }
  int32_t Surplus() const { return std::max(0, holding - Minimum()); }
};

struct alignas(64) GroupState {  // in the order of PodState, for its reason
  QueueId queue = 0;
  UserId user = 0;  // whose work it is; 0: nobody says
  int32_t priority = 0;
  PreemptUnit unit = PreemptUnit::kGang;
  std::vector<SetState> sets;
  std::vector<PodId> members;  // in the order they are placed

  uint32_t change = 1;  // grows when its members move
  bool live = false;
  bool known = false;  // the PodGroup object was seen, or the group is implicit
  bool implicit = false;
  bool preemptible = true;
  bool may_preempt = true;
  bool has_surplus = false;    // counted in WorkCounts
  bool below = false;          // listed in WorkLists::below_minimum
  int32_t home = kNone;        // the pool where its waiting pods claim a share; kNone: not chosen
  int32_t held = 0;            // members that hold room, of preemptible work
  int32_t holder_pos = kNone;  // in QueueState::holders
  WallTime checkpoint;         // the latest of its members; zero: none
  WallTime creation;
  Duration min_runtime{0};
  WallTime stale_since;
  WallTime moved_at;              // when it, or others for it, were moved last; zero: never
  goodput::Curve curve;           // by members of one set; empty: not known
  int32_t curve_set = 0;          // index into `sets`
  int32_t curve_measured_at = 0;  // the size that was measured last
  Duration resize_cost{0};

  uint64_t reason_hash = 0;   // hash of the last reason told; 0: none
  uint64_t summary_hash = 0;  // of its inputs; 0: not known
  std::string key;            // PodGroup's key, or "/" + pod key for a pod without a group
  std::string uid;
  std::string queue_name;
  std::unique_ptr<GroupInfo> info;  // explicit groups
};
// Whether some or all of its pods must be near each other.
bool HasTopology(const GroupState& group);

// A queue's part of one pool, subtree included.
struct QueuePool {
  QueueAmounts quota{kUnlimited, kUnlimited, kUnlimited};
  QueueAmounts limit{kUnlimited, kUnlimited, kUnlimited};
  std::array<double, kQueueResources> weight{1, 1, 1};
  QueueAmounts kept{};                         // of the quota: not lent while it is idle
  QueueAmounts used{};                         // held or promised
  QueueAmounts used_protected{};               // the part of it that is not preemptible
  QueueAmounts leaving{};                      // beside it: by pods that terminate
  QueueAmounts pending{};                      // by pods that wait
  std::array<double, kQueueResources> past{};  // decayed use, for time-based shares
  bool closed = false;                         // its work runs elsewhere
};

// What the work of one user holds of a queue, in all pools.
struct UserUse {
  QueueAmounts used{};
  QueueAmounts leaving{};  // beside it: by pods that terminate
};

struct QueueState {
  std::string name;
  bool known = false;
  QueueInfo info;
  QueueId parent = kNone;
  std::vector<QueueId> children;
  int32_t rank = 0;              // by age and name among all queues
  std::vector<QueuePool> pools;  // by index into State::pools
  std::vector<int> pool_order;   // indices, those its work prefers first
  // A project that lists no pools has one quota and one limit for all pools together. In each pool
  // they are what the other pools leave of these.
  bool one_share = false;
  QueueAmounts whole_quota{kUnlimited, kUnlimited, kUnlimited};
  QueueAmounts whole_limit{kUnlimited, kUnlimited, kUnlimited};
  QueueAmounts whole_kept{};
  // Preemptible members holding room, by priority: is there anything to preempt at all?
  std::map<int32_t, int32_t> holders_by_priority;
  std::vector<GroupId> holders;  // preemptible groups holding room, in no order
  // By UserId, of the queue's own work; kept where the project has rules for its users.
  std::vector<UserUse> users;
  int64_t user_gpu_limit = kUnlimited;  // ppm, of each user

  bool HasUserRules() const { return info.fair_to_users || info.user_gpu_limit >= 0; }
  const UserUse& UseOf(UserId user) const {
    static constexpr UserUse kNothing{};
    return static_cast<size_t>(user) < users.size() ? users[user] : kNothing;
  }
  // The amount that counts against bounds of work in the pool: that of the pool, or, with one share
  // for all pools, the sum of all.
  int64_t Counted(QueueAmounts QueuePool::*what, size_t pool, int resource) const {
    if (!one_share) return (pools[pool].*what)[resource];
    int64_t sum = 0;
    for (const QueuePool& each : pools) sum += (each.*what)[resource];
    return sum;
  }
  int64_t LimitIn(size_t pool, int resource) const {
    return one_share ? whole_limit[resource] : pools[pool].limit[resource];
  }
  int64_t QuotaIn(size_t pool, int resource) const {
    return one_share ? whole_quota[resource] : pools[pool].quota[resource];
  }
};

// The ids of named records, and the records that are free for another name.
struct RecordIds {
  using Map = std::unordered_map<std::string, int32_t, StringHash, std::equal_to<>>;
  Map nodes;
  Map pods;
  Map groups;
  Map queues;
  Map users;
  std::vector<NodeId> free_nodes;
  std::vector<PodId> free_pods;
  std::vector<GroupId> free_groups;
};

// What the nodes of each pool add up to; follows from nodes and pools.
struct PoolFacts {
  std::vector<int> live;              // pools with nodes; at least one index
  std::vector<QueueAmounts> totals;   // by pool: `open`, and what is held of closed nodes
  std::vector<QueueAmounts> open;     // by pool, as of totals_version
  std::vector<NodeId> closed;         // cordoned or not ready: nobody starts there
  uint32_t totals_version = 0;        // of Versions::nodes
  std::vector<NodeFilter> filters;    // by pool
  std::vector<int64_t> free_gpu_ppm;  // by pool, in the future, parts of devices included
};

// The groups and pods that a cycle has to visit.
struct WorkLists {
  std::vector<int32_t> startable;   // by GroupId: members that could be placed now
  WaitingLines waiting;             // groups with pods to place
  std::set<GroupId> below_minimum;  // groups that hold room but less than their minimum
  std::set<GroupId> said_stale;     // groups whose object said so since the last cycle
  std::set<GroupId> curved;         // groups with a goodput curve
  RankBitmap promised;              // pods with a promise
  RankBitmap hinted;                // pods with a nominated node
  std::vector<PodId> stopped;       // pods with PodState::stopped
};

// Counts that tell an action at once whether it has anything to do.
struct WorkCounts {
  int surplus_groups = 0;  // preemptible groups with members beyond a minimum
  int releasing_pods = 0;
  int soft_taints = 0;  // present nodes with PreferNoSchedule taints
  int known_queues = 0;
  bool some_queue_keeps = false;  // lends less than its quota
};

// The cycle under way.
struct CurrentCycle {
  uint64_t number = 0;  // grows when `touched` begins anew
  WallTime now;
  // Ranks of nodes whose room changed since the cycle began, in order, repetitions included.
  std::vector<int> touched;
  GroupId served =
      kNone;  // the group for which victims are sought: they may move to nodes that are held for it
};

// What has changed: a result that was kept with a version holds as long as it is the same.
struct Versions {
  uint64_t model = 1;
  uint64_t room = 1;        // grows when room appears anywhere
  uint32_t nodes = 0;       // the last that was given: NodeState::version
  uint32_t pools = 1;       // grows when nodes may have changed their pools
  bool ranks_dirty = true;  // State::Refresh is to make them anew
  bool queues_dirty = true;
};

struct State {
  State();

  // --- tables -------------------------------------------------------------------------------
  LargeVector<NodeState> nodes;
  LargeVector<PodState> pods;
  LargeVector<GroupState> groups;
  std::vector<QueueState> queues;  // [0] is the default queue
  std::vector<std::string> users;  // [0] is nobody
  std::vector<PoolInfo> pools;     // by name; the last takes nodes of no pool
  std::map<std::string, TopologyInfo, std::less<>> topologies;
  std::map<std::string, BudgetInfo, std::less<>> budgets;
  ShapeTable shapes;
  TermTable terms;
  RecordIds ids;
  std::vector<std::string> resource_names;  // interned extended resources, but nvidia.com/gpu
  std::vector<int64_t> resource_gpus;       // n of nvidia.com/mig-<n>g.*, else 0
  std::vector<uint8_t> resource_kinds;      // whether it is a kind of devices
  std::vector<int64_t> resource_part_ppm;   // of a GPU, if it is a kind of such parts
  RecordIds::Map resource_ids;

  // --- what follows from them ---------------------------------------------------------------
  NodeIndex index;
  PoolFacts pool_facts;
  WorkLists lists;
  WorkCounts counts;
  int64_t smallest_gpu_mib = 0;  // of the present nodes; 0: none says
  Versions versions;

  // --- what cycles decide -------------------------------------------------------------------
  CurrentCycle cycle;
  std::vector<NodeId> held_nodes;  // with held_for
  double past_share = 0;           // how much past use counts against a queue's weight; 0: not

  // --- moving pods --------------------------------------------------------------------------
  void SetPlace(PodId pod, PodPhase phase, NodeId node, const DeviceSet& devices);
  void SetPromise(PodId pod, NodeId node, const DeviceSet& devices);

  // Where the pod would rather go: its nominated node. Does not count for anything.
  void SetHint(PodId pod, NodeId node);

  // --- reading ------------------------------------------------------------------------------
  const Shape& ShapeOf(PodId pod) const { return shapes[pods[pod].shape]; }
  // Decided once per node version.
  const Shape::Verdict& VerdictOf(ShapeId shape, NodeId node);
  // Whole-GPU or shared part of one device, in ppm, that a pod of this shape takes on the node.
  int64_t DevicePpm(const Shape& shape, const NodeState& node) const;
  // What a queue is charged for a pod of this shape; node kNone: while it waits.
  QueueAmounts ChargeOf(const Shape& shape, NodeId node) const;
  // Job order: priority, age, uid, key.
  bool JobBefore(GroupId a, GroupId b) const;
  // The pool that a group's work belongs to: the one it is in, else its home. Groups do not span
  // pools when there are quotas.
  int PoolOf(GroupId group);
  int HomePool(const GroupState& group, ShapeId shape);
  // Chooses the pool in which each waiting group claims its share: the first in its queue's order
  // where quota and room are left for it, else the first with free room, else the first that suits.
  void ChooseHomes();
  bool SuitsPool(ShapeId shape, int pool);
  // Pools to try for the group, in order; kNone: all nodes alike.
  std::vector<int> PoolsFor(GroupId group);
  const NodeFilter* FilterOf(int pool) const {
    const bool all = pool == kNone || pool_facts.filters[pool].nodes.empty();
    return all ? nullptr : &pool_facts.filters[pool];
  }
  // Members within a group: member priority, age, key.
  bool MemberBefore(PodId a, PodId b) const;
  bool GroupWaits(const GroupState& group) const;
  // "namespace/name" of the PodGroup; empty for a pod without one.
  const std::string& GroupName(const GroupState& group) const;
  bool QueueUnknown(const GroupState& group) const;

  // Call for each i of a long list of pods, which lie anywhere in memory: prefetches the pods that
  // come next.
  void PrefetchAt(const std::vector<PodId>& list, size_t i) const;

  // --- upkeep (state.cc, pools.cc) ----------------------------------------------------------
  // Ranks, pools and index after nodes or pools changed; no-op otherwise.
  void Refresh();
  void RankQueues();
  void RankNodes();
  void SumPools();
  void SumOpenNodes();
  void AddHeld(const NodeState& node, QueueAmounts& total) const;
  void AssignPools(bool charges_changed);
  void ChangePools(const std::function<void()>& change);
  // Charges all pods to their queues (+1), or takes all charges away (-1). Queues and pools change
  // only while nothing is charged.
  void ChargePods(int sign);
  void ReadQueueLimits(QueueId queue);
  // Sets what each pool has of the one quota and limit of the queue.
  static void SpreadShare(QueueState& queue);
  void ForgetHomes();
  void UpdateBelow(GroupId group);
  // Calls fn for every queue from the group's own up to its root.
  template <class Fn>
  void ForQueues(QueueId queue, Fn&& fn) {
    for (int depth = 0; queue != kNone && depth < kQueueDepthMax; ++depth) {
      fn(queues[queue]);
      queue = queues[queue].parent;
    }
  }

  // Adds (+1) or takes away (-1) everything a pod contributes. Callers that change what a pod or
  // its surroundings weigh take it away first and add it again after.
  void Count(PodId pod, int sign);
  // Recounts a node's idle devices and moves it to its place in the index.
  void Reindex(NodeState& node);
  // What is free on the nodes of a pool together; kNone: of all.
  int64_t FreeGpuPpm(int pool) const;
  void CountNode(PodId pod, int sign);
  void CountReleasing(PodId pod, int sign);
  void CountPromise(PodId pod, int sign);
  void CountGroup(PodId pod, int sign);
  void CountQueue(PodId pod, int sign);
  void CountLeaving(PodId pod, int sign);
  // The use of the group's user in the group's queue; null where the project has no rules for it.
  UserUse* UseToCount(const GroupState& group);
  void CountHolder(GroupId group, int sign);
  void CountTerms(PodId pod, int sign);
  // SetPlace for a pod that stays where it is and begins to terminate, or no longer does.
  void TurnPlaced(PodId pod, PodPhase phase);

  // --- records (records.cc) -----------------------------------------------------------------
  NodeId FindNode(std::string_view name) const;
  PodId FindPod(std::string_view key) const;
  GroupId FindGroup(std::string_view key) const;
  NodeId EnsureNode(std::string_view name);
  GroupId EnsureGroup(std::string_view key);
  QueueId EnsureQueue(std::string_view name);  // "" is the default queue
  UserId EnsureUser(std::string_view name);    // "" is nobody
  int EnsureResource(std::string_view name);
  PodId NewPod(std::string_view key);
  void FreeNodeIfUnused(NodeId node);
  void FreeGroupIfUnused(GroupId group);
  ShapeId AcquireShape(const PodInfo& pod);
  Shape ShapeOfRequests(const PodInfo& pod);
  void ReleaseShape(ShapeId shape);
  void CountTerm(TermId term);
  void AddMember(PodId pod);
  void RemoveMember(PodId pod);
  void SetCheckpoint(PodId pod, WallTime checkpoint);
  // Since when the pod has work to lose: its start, or a later checkpoint that keeps its work.
  WallTime SavedAt(const PodState& pod) const;
  void FindCheckpoint(GroupState& group) const;
  int32_t ResolveSet(const GroupState& group, const std::string& pod_set) const;
  // Gives GPU pods on the node whose devices were not said those that the others leave.
  void AssignImplicitDevices(NodeId node);
};

}  // namespace swell::sched
