// VictimIndex: for each node the cheapest set of units whose end makes room for one pod of a shape,
// kept in VictimOrder and renewed for nodes that change (docs/internals/victim-search.md).
// - Threads: none. Lives for one cycle.
// - Invariants: a listed set may be out of date in one direction only: it costs what is listed or
//   more. Best() evaluates the first one again before it answers.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "sched/victims/node_room.h"
#include "sched/victims/victim_facts.h"
#include "sched/victims/victim_order.h"
#include "sched/victims/victims.h"

namespace swell::sched {

// What making room on one node would take.
struct NodeEvictionPlan {
  bool possible = false;
  bool stops_gang = false;  // takes more than surplus
  int64_t cost = 0;
  int32_t priority = INT32_MIN;         // highest among victims
  int32_t over_rank = -1;               // least over its share among victims' queues
  int64_t last_saved_ns = 0;            // oldest among victims
  int64_t member_priority = INT64_MIN;  // highest among surplus: who is given up last
  std::vector<VictimUnit> units;
};

class VictimIndex {
 public:
  explicit VictimIndex(CycleContext& context);

  // Begins a search: for whom, under which rule. Catches up with what changed since the last one.
  void Begin(GroupId group, const VictimPolicy& policy);
  // The best node for the pod within the filter, as it is now; kNone: none.
  NodeId Best(PodId pod, const NodeFilter* filter, NodeEvictionPlan& plan);
  // Room was made there and the pod still did not fit: not in this search again.
  void Exclude(PodId pod, NodeId node);
  // Nodes changed: renews their plans.
  void CatchUp();
  // Everything of the group that may be given up, wherever it runs.
  void PicksOf(GroupId group, std::vector<VictimUnit>& units);
  VictimFacts& facts() { return facts_; }
  // Ranks whose nodes changed since the call before.
  const std::vector<int>& changed() const { return changed_; }

 private:
  struct Table {
    PodId example = kNone;
    std::vector<VictimOrder> key_of;      // by rank; valid where listed
    std::vector<NodeEvictionPlan> plans;  // the same
    std::vector<uint8_t> listed;
    std::set<VictimOrder> order;
  };
  struct Candidate {
    GroupId group;
    PodId pod;
  };

  // Null: the budget ended before every node was looked at.
  Table* TableFor(PodId pod);
  VictimOrder OrderOf(const NodeEvictionPlan& plan, int rank) const;
  void Relist(Table& table, NodeId node);
  NodeEvictionPlan Evaluate(PodId pod, NodeId node);
  void CollectCandidates(const NodeState& node);
  void ValueUnits(double missing);
  bool ChooseUnits(double missing);
  NodeEvictionPlan PlanOfChosen() const;
  // Whether it is what Evaluate would answer, the node being as it was.
  bool StillHolds(const NodeEvictionPlan& plan);
  bool AddSingleUnits(GroupId group, int first, int count, std::vector<VictimUnit>& units);
  void AddUnits(GroupId group, int first, int count, std::vector<VictimUnit>& units);
  bool AllNeeded();
  bool Choose(double missing, bool quantized);
  void ChooseOne(double missing);
  std::pair<bool, int64_t> ChosenCost() const;
  void Minimize();
  void Add(size_t pick);
  void Drop(size_t pick);
  std::vector<int> RanksWithCandidates();
  void PrefetchAt(const std::vector<int>& ranks, size_t i) const;

  CycleContext& context_;
  State& state_;
  VictimFacts facts_;
  int pool_ = kNone;  // of the search under way; kNone: any

  std::map<ShapeId, Table> tables_;
  std::set<std::pair<ShapeId, NodeId>> excluded_;
  size_t seen_touched_ = 0;
  std::vector<int> changed_;
  std::vector<uint8_t> marked_;  // by rank, while catching up

  // About the node being evaluated.
  NodeRoom room_;
  std::vector<Candidate> candidates_;
  std::vector<uint8_t> going_;  // by candidate: how many chosen units have it
  std::vector<VictimUnit> units_;
  std::vector<uint8_t> chosen_;
};

}  // namespace swell::sched
