// VictimFacts: what the searches of one searcher know about work that could be stopped: whether the
// policy lets it go, what its loss costs, and what the search under way has taken.
// - Threads: none. Lives for one cycle.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>
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

// Pods that were taken, and what they were before.
using TakenPods = std::vector<std::pair<PodId, PodPhase>>;

class VictimFacts {
 public:
  explicit VictimFacts(CycleContext& context);

  // Begins a search. True if the policy adds queues: what was listed by these facts is void then.
  bool Begin(GroupId group, const VictimPolicy& policy);

  // Whether the policy lets any work of the queue go.
  bool MayLose(QueueId queue) const { return from_[queue] != 0; }
  // Whether anything of the group may go.
  bool Eligible(GroupId group);
  // Whether more than its surplus may go.
  bool MayStop(GroupId group);
  // Whether it runs, comes back, and has not been moved lately.
  bool MayMove(GroupId group);
  // Whether the policy and the disruption budgets let the unit go beside what goes already. If so,
  // its loss is added.
  bool Allowed(const VictimUnit& unit, Losses& losses);
  // The same for units that go together.
  bool AllAllowed(const std::vector<VictimUnit>& units);
  bool any_eligible() const { return any_eligible_; }
  // True if only a minimum run time or a disruption budget protects some work.
  bool guarded() const { return guarded_; }

  // What would be lost, in milli GPU-seconds.
  int64_t CostOf(PodId pod) const;
  int64_t CostOfGroup(GroupId group) { return FactsOf(group).cost; }
  // Since when a pod has work to lose, and the latest of a group's pods.
  int64_t LastSaved(PodId pod) const;
  int64_t LastSavedOfGroup(GroupId group) { return FactsOf(group).last_saved_ns; }
  // VictimUnit::charge, as things are now.
  QueueAmounts ChargeOf(const VictimUnit& unit);

  // Whether the policy takes the group's work back from another queue than the job's.
  bool TakesBackFrom(GroupId group) const {
    return policy_->takes_back && state_.groups[group].queue != state_.groups[group_].queue;
  }

  // 0: the queue is most over its share.
  int32_t OverRank(QueueId queue) const { return over_rank_[queue]; }
  // By VictimOrder. Losses count as they are, or quantized.
  bool Before(const VictimUnit& a, const VictimUnit& b, bool quantized) const;
  // Among units that are equal otherwise: the youngest first, and in one group the last member.
  bool GivesUpFirst(const VictimUnit& a, const VictimUnit& b) const;

  // What the search under way has taken.
  void CountTaken(GroupId group, const TakenPods& pods);
  int TakenOf(GroupId group) const {
    const int32_t at = place_of_[group];
    return at == kNone ? 0 : facts_[at].taken;
  }
  void ForgetTaken();

 private:
  struct GroupFacts {
    uint32_t change = 0;  // of the group when they were taken; 0: never
    int64_t cost = 0;
    int64_t last_saved_ns = 0;
    QueueAmounts charge{};
    int8_t may_stop = -1;
    int32_t taken = 0;  // pods this search took
  };

  // The group's facts, new ones if nobody asked for them before.
  GroupFacts& At(GroupId group);
  GroupFacts& FactsOf(GroupId group);
  QueueAmounts SurplusCharge(GroupId group) const;
  bool WithinBudgets(const VictimUnit& unit, Losses& losses);
  bool LaterSpeaksFor(const std::vector<VictimUnit>& units, size_t i) const;

  CycleContext& context_;
  State& state_;
  GroupId group_ = kNone;
  const VictimPolicy* policy_ = nullptr;
  std::vector<uint8_t> from_;     // by QueueId: its work may go
  std::vector<int8_t> eligible_;  // by GroupId; -1: not asked yet
  // Most groups wait, and nobody asks about them.
  std::vector<int32_t> place_of_;  // by GroupId: in `facts_`; kNone: never asked for
  std::vector<GroupFacts> facts_;
  std::vector<int32_t> over_rank_;  // by QueueId: 0 is most over its share
  bool any_eligible_ = false;
  bool guarded_ = false;
  std::vector<GroupId> taken_from_;
  std::vector<int64_t> spent_;  // by budget: pods this search took
};

}  // namespace swell::sched
