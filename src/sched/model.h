// Model: the scheduler's picture of the cluster, kept up to date change by change.
//
// Names, resources and labels are interned on the way in; a cycle works on dense ids and arrays
// (state/state.h) and touches no strings until it writes down its decisions. Nothing is rebuilt for
// it.
//
//   model.UpsertNode(...); model.UpsertGroup(...); model.UpsertPod(...);   // from watches
//   CycleResult result = scheduler.RunCycle(model, now);
//   // Every decision is now *assumed*. For one that the API refused:
//   model.Forget(pod_key);
//
// Assumptions: after a bind was decided, a watch event that still shows the pod pending does not
// undo it, nor does one that shows a victim still running undo an eviction. They hold until an
// event confirms them, the pod is removed or replaced (another uid), or Forget is called; Forget
// returns the pod to what the watch said last.
//
// Order of arrival does not matter: pods may come before their node, group or queue.
//
// - Threads: none.
// - Ownership: copies what it is given. References that do not resolve are kept by name and resolve
//   when the object arrives. Upserting an equal object changes nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sched/state/types.h"

namespace swell::sched {

class Recorder;
struct State;

class Model {
 public:
  Model();
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  void UpsertNode(const NodeInfo& node);
  void RemoveNode(std::string_view name);
  void UpsertPod(const PodInfo& pod);
  void RemovePod(std::string_view key);
  void UpsertGroup(const GroupInfo& group);
  void RemoveGroup(std::string_view key);
  void UpsertQueue(const QueueInfo& queue);
  void RemoveQueue(std::string_view name);
  void UpsertPool(const PoolInfo& pool);
  void RemovePool(std::string_view name);
  void UpsertTopology(const TopologyInfo& topology);
  void RemoveTopology(std::string_view name);
  void UpsertBudget(const BudgetInfo& budget);
  void RemoveBudget(std::string_view key);

  // Someone else's decision is as good as done: `pod` takes its room on `node` from now on. Not
  // needed after RunCycle, which assumes its own decisions. Unknown names are ignored.
  void AssumeBound(std::string_view pod,
                   std::string_view node,
                   const std::vector<int>& gpu_devices = {});
  // The pod is being deleted; its room is on its way to be free.
  void AssumeEvicted(std::string_view pod);
  // The room promised to the pod is anybody's until the next cycle; the pod still has the first
  // say.
  void LiftPromise(std::string_view pod);
  // Drops what was assumed or promised for the pod: it is again what the watch said last.
  void Forget(std::string_view pod);

  // Sends every later change to this recorder as well; null stops that.
  void Record(Recorder* recorder) { recorder_ = recorder; }

  // Pictures for printing and metrics.
  struct NodeView {
    std::string name;
    int gpus = 0;
    int idle_gpus = 0;       // devices nobody holds
    int releasing_gpus = 0;  // devices that only terminating pods hold, less those promised
    std::string pool;
  };
  struct PodView {
    std::string key;
    std::string group;
    PodPhase phase = PodPhase::kPending;  // with assumptions
    std::string node;                     // empty when pending
    std::string nominated_node;
    std::vector<int> gpu_devices;
    bool assumed = false;
    double gpus = 0;  // held where it is placed, else asked for
    double cpus = 0;
  };
  struct QueueView {
    std::string name;
    // In GPUs, cores, bytes; -1: unlimited.
    struct Resource {
      std::string name;  // "gpu", "cpu", "memory"
      double fair_share = 0;
      double quota = 0;
      double limit = 0;
      double allocated = 0;
      double requested = 0;
    };
    std::vector<Resource> resources;  // of all pools with nodes together
    // One quota and one limit for all pools. The pools' parts show where they are claimed.
    bool one_share = false;
    struct Pool {
      std::string name;  // empty: nodes of no pool
      std::vector<Resource> resources;
    };
    std::vector<Pool> pools;
  };
  struct GroupView {
    std::string name;   // PodGroup's key; of a pod without a group the pod's
    std::string queue;  // empty: the default queue
    double gpus = 0;    // held
    int minimum = 0;    // members without which it is of no use
    int members = 0;    // that have not ended
    int holding = 0;    // placed and not terminating
    int waiting = 0;    // could be placed now
    WallTime creation;
  };
  std::vector<GroupView> Groups() const;  // with members, in no order
  std::vector<NodeView> Nodes() const;    // by name
  std::vector<PodView> Pods() const;      // by key
  std::vector<QueueView> Queues() const;  // by name
  std::optional<PodView> Pod(std::string_view key) const;
  // The queue of a pod that is known; empty: the default one.
  std::string_view QueueOfPod(std::string_view key) const;

  size_t node_count() const;
  size_t pod_count() const;
  // Grows with every change that can matter to a decision.
  uint64_t version() const;

  // For the scheduler and its tests; everyone else has no business with dense ids.
  State& state() { return *state_; }
  const State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
  Recorder* recorder_ = nullptr;
};

}  // namespace swell::sched
