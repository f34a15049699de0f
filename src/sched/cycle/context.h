// CycleContext: what the actions of one cycle share. These are the state, the clock, the budget and
// the result so far.
// - Threads: none. Lives for one RunCycle.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sched/cycle/cycle.h"
#include "sched/cycle/disruptions.h"
#include "sched/cycle/search_key.h"
#include "sched/queues/fair_share.h"
#include "sched/state/state.h"

namespace swell::sched {

class VictimIndex;

// What is free on all nodes of a pool together.
struct FreeRoom {
  size_t as_of = 0;    // the length of CurrentCycle::touched then, plus one; 0: never computed
  CoreAmounts core{};  // without GPUs: PoolFacts::free_gpu_ppm has those
};

// The pods bound in this cycle, with the indices of their decisions: added in bulk, looked up
// later. If one of them must give way again in the same cycle, it is not evicted: its decision is
// dropped.
class BoundPods {
 public:
  void Add(PodId pod, GroupId group, size_t decision);
  // Forgets the pod; nullopt: it was not bound.
  std::optional<size_t> Take(PodId pod);
  // Whether any pod of the group was, even if that was taken back.
  bool HasGroup(GroupId group);

 private:
  static constexpr size_t kTaken = SIZE_MAX;
  bool sorted_ = true;
  std::vector<std::pair<PodId, size_t>> pods_;  // the last entry of a pod counts
  std::vector<GroupId> groups_;
  void Sort();
};

// What the victim searches of a cycle share.
struct VictimSearches {
  int64_t budget = 0;  // node evaluations left
  // Searches not to repeat, and why they found nothing (Scheduler::failed_searches_).
  std::map<SearchKey, std::string>& failed;
  std::map<SearcherKey, std::shared_ptr<VictimIndex>> indexes;
  std::map<int, FreeRoom> free_rooms;  // by pool
  // Why the last search for a group found nothing: a part of the group's waiting reason.
  std::map<GroupId, std::string> said;
  // The same for all groups of one waiting line, by WaitingLine::number.
  std::map<uint64_t, std::string> said_of_line;
};

// What is known of the cycle's decisions, beside CycleResult::decisions; see actions/decide.cc.
struct DecidedPods {
  BoundPods bound;
  int32_t binds = 0;
  std::vector<size_t> taken_back;                                 // indices of decisions
  std::vector<std::shared_ptr<const std::string>> request_words;  // by ShapeId
};

struct CycleContext {
  State& state;
  const Settings& settings;
  CycleStats& stats;
  const WallTime now;
  CycleResult& result;
  const QueueShares& shares;
  VictimSearches searches;
  DecidedPods decided;
  DisruptionLedger disruptions{state};

  // The last cycle took back all that it had decided, because jobs displaced each other. So groups
  // that were promised room go first, in every queue.
  bool promised_first = false;
  std::set<GroupId> deferred;  // could start if others moved; see actions/consolidate.cc
  // At which room epoch an attempt to place failed.
  std::map<PlacementKey, uint64_t> failed_placements;

  bool Full() const { return decided.binds >= settings.binds_per_cycle_max; }
  void WakeAt(WallTime when) {
    if (!result.wake_at || when < *result.wake_at) result.wake_at = when;
  }
};

}  // namespace swell::sched
