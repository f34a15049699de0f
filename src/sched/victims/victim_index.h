// What each node could give: the cheapest set of units on it that makes room for one pod of a
// shape, kept in order of cost and renewed for the nodes that change.
// - Threads: none. Lives for one cycle. A listed offer may be out of date in one direction only, so
//   the search evaluates the best one again before it uses it.
#pragma once

#include <bit>
#include <map>
#include <set>
#include <vector>

#include "sched/victims/victim_order.h"
#include "sched/victims/victims.h"

namespace swell::sched {

// Something that may be stopped: one pod, or a whole group (pod == kNone).
struct VictimUnit {
  GroupId group = kNone;
  PodId pod = kNone;
  bool surplus = false;
  int64_t cost = 0;           // milli GPU-seconds
  int64_t last_saved_ns = 0;  // since when it has work to lose; youngest first among equals
  double value = 0;           // how much of what is missing it frees here
  int first = 0;              // its pods on the node: a range of the candidates
  int count = 0;
  uint32_t change = 0;    // of the group when this was found
  QueueAmounts charge{};  // what its queue would be charged less
};

// Losses below this count as none, in milli GPU-seconds: coming back takes as much. Others are
// rounded down to six significant bits, because members that started together have lost alike.
inline constexpr int64_t kLossFloor = 1'200'000;
inline int64_t QuantizedCost(int64_t cost) {
  if (cost < kLossFloor) return 0;
  const int shift = std::bit_width(static_cast<uint64_t>(cost)) - 6;
  return cost >> shift << shift;
}

// What making room on one node would take.
struct NodeEvictionPlan {
  bool possible = false;
  bool stops = false;  // takes more than surplus
  int64_t cost = 0;
  int32_t priority = INT32_MIN;  // highest among victims
  int32_t over_rank = -1;        // least over its share among victims' queues
  int64_t last_saved_ns = 0;     // oldest among victims
  int64_t member = INT64_MIN;    // highest member priority among surplus: who is given up last
  std::vector<VictimUnit> units;
};

// Room on one node as it would be with some pods gone.
class Scratch {
 public:
  void Reset(const State& state, const NodeState& node, const Shape& shape);
  void Move(const PodState& pod, int sign);  // +1: gone, -1: back
  // Shares of each wanted resource that are missing: 0 when the pod fits.
  double Missing() const;
  // Whether it would not fit for sure if so much of what went stayed.
  bool ShortWithout(const CoreAmounts& amounts) const;

 private:
  const State* state_ = nullptr;
  const NodeState* node_ = nullptr;
  const Shape* shape_ = nullptr;
  int64_t ppm_ = 0;
  CoreAmounts free_{};
  std::vector<int64_t> ext_free_;
  int device_count_ = 0;
  std::array<int64_t, kDevicesMax> devices_{};
};

// Pods that were taken, and what they were before.
using TakenPods = std::vector<std::pair<PodId, PodPhase>>;

class VictimIndex {
 public:
  explicit VictimIndex(Context& context);

  // Begins a search: for whom, under which rule. Catches up with what changed since the last one.
  void Begin(GroupId group, const VictimPolicy& policy);
  // The best node for the pod within the filter, as it is now; kNone: none.
  NodeId Best(PodId pod, const NodeFilter* filter, NodeEvictionPlan& offer);
  // Room was made there and the pod still did not fit: not in this search again.
  void Exclude(PodId pod, NodeId node);
  // Nodes changed: renews their offers.
  void CatchUp();
  // Everything of the group that may be given up, wherever it runs.
  void PicksOf(GroupId group, std::vector<VictimUnit>& units);
  bool Eligible(GroupId group);
  bool MayStop(GroupId group);
  // Whether it runs, comes back, and has not been moved lately.
  bool MayMove(GroupId group);
  void CountTaken(GroupId group, const TakenPods& pods);
  int TakenOf(GroupId group) const { return taken_of_[group]; }
  void ForgetTaken();
  int64_t CostOf(PodId pod) const;
  int64_t LastSaved(PodId pod) const;
  // VictimUnit::charge, as things are now.
  QueueAmounts ChargeOf(const VictimUnit& pick);
  QueueAmounts SurplusCharge(GroupId group) const;
  // Whether the rule and the disruption budgets let it go beside what goes already; notes the loss
  // then.
  bool Allowed(const VictimUnit& pick, Losses& losses);
  // 0: the group's queue is most over its share.
  int32_t OverRank(GroupId group) const { return over_rank_[state_.groups[group].queue]; }
  // By VictimOrder. Losses count as they are, or quantized.
  bool Before(const VictimUnit& a, const VictimUnit& b, bool quantized) const;
  // Among units that are equal otherwise: the youngest first, and in one group the last member.
  bool GivesUpFirst(const VictimUnit& a, const VictimUnit& b) const;
  // Ranks whose nodes changed since the call before.
  const std::vector<int>& changed() const { return changed_; }

  bool any_eligible() const { return any_eligible_; }
  bool guarded() const { return guarded_; }

 private:
  struct Table {
    PodId example = kNone;
    std::vector<VictimOrder> key_of;       // by rank; valid where listed
    std::vector<NodeEvictionPlan> offers;  // the same
    std::vector<uint8_t> listed;
    std::set<VictimOrder> order;
  };
  struct GroupFacts {
    uint32_t change = 0;  // of the group when they were taken; 0: never
    int64_t cost = 0;
    int64_t last_saved_ns = 0;  // the last of its members to begin
    QueueAmounts charge{};
    int8_t may_stop = -1;
  };
  struct Candidate {
    GroupId group;
    PodId pod;
  };

  // Null: the budget ended before every node was looked at.
  Table* TableFor(PodId pod);
  VictimOrder OrderOf(const NodeEvictionPlan& offer, int rank) const;
  void Relist(Table& table, NodeId node);
  NodeEvictionPlan Evaluate(PodId pod, NodeId node);
  // Whether it is what Evaluate would answer, the node being as it was.
  bool StillHolds(const NodeEvictionPlan& offer);
  bool WithinBudgets(const VictimUnit& pick, Losses& losses);
  bool LaterSpeaksFor(const std::vector<VictimUnit>& units, size_t i) const;
  bool AllAllowed(const std::vector<VictimUnit>& units);
  bool AddSingleUnits(GroupId group, int first, int count, std::vector<VictimUnit>& units);
  void AddUnits(GroupId group, int first, int count, std::vector<VictimUnit>& units);
  bool AllNeeded();
  bool Choose(double missing, bool quantized);
  void ChooseOne(double missing);
  std::pair<bool, int64_t> ChosenCost() const;
  void Minimize();
  void Add(size_t pick);
  void Drop(size_t pick);
  GroupFacts& FactsOf(GroupId group);
  int64_t CostOfGroup(GroupId group);

  Context& context_;
  State& state_;
  GroupId group_ = kNone;
  const VictimPolicy* policy_ = nullptr;
  void Expect(const std::vector<QueueId>& from);
  std::vector<int> RanksWithCandidates();
  void PrefetchAt(const std::vector<int>& ranks, size_t i) const;

  std::vector<uint8_t> from_;     // by QueueId: its work may go
  std::vector<int8_t> eligible_;  // by GroupId; -1: not asked yet
  std::vector<GroupFacts> facts_;
  std::vector<int32_t> over_rank_;  // by QueueId: 0 is most over its share
  bool any_eligible_ = false;
  bool guarded_ = false;           // someone may go but for a min runtime or a budget
  std::vector<int32_t> taken_of_;  // by GroupId: pods this search took
  std::vector<GroupId> taken_from_;
  std::vector<int64_t> spent_;  // by budget: pods this search took
  std::map<ShapeId, Table> tables_;
  std::set<std::pair<ShapeId, NodeId>> excluded_;
  size_t seen_touched_ = 0;
  std::vector<int> changed_;
  std::vector<uint8_t> marked_;  // by rank, while catching up

  // About the node being evaluated.
  Scratch scratch_;
  std::vector<Candidate> candidates_;
  std::vector<uint8_t> going_;  // by candidate: how many chosen units have it
  std::vector<VictimUnit> units_;
  std::vector<uint8_t> chosen_;
};

}  // namespace swell::sched
