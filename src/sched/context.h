// What the actions of one cycle share: the state, the clock, the budget, and the result so far.
//
// Thread-safety: none. Lives for one RunCycle.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sched/cycle.h"
#include "sched/disruptions.h"
#include "sched/fair_share.h"
#include "sched/placement.h"
#include "sched/state.h"
#include "sched/statement.h"

namespace swell::sched {

class VictimFinder;

// What is free on all nodes of a pool together.
struct FreeRoom {
  size_t as_of = 0;    // State::touched then had so many less one; 0: never
  CoreAmounts core{};  // but GPUs, which State::free_gpu_ppm has
};

// Who was bound in a cycle, with the decision's index: added in bulk, asked about afterwards.
// Whoever of them must give way again is not evicted: the decision is taken back, as if it had
// never been made.
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
  std::vector<std::pair<PodId, size_t>> pods_;  // of several of one pod the last counts
  std::vector<GroupId> groups_;
  void Sort();
};

struct Context {
  State& state;
  const Settings& settings;
  CycleStats& stats;
  const WallTime now;
  CycleResult& result;
  const QueueShares& shares;
  int64_t budget = 0;  // node evaluations left to victim searches
  int32_t binds = 0;

  // Victim searches not to repeat, by what was asked (Scheduler::failed_searches_).
  std::map<std::vector<int32_t>, std::string>& failed_searches;
  // Victim searches that share what they know of the nodes, by rule and who asks.
  std::map<std::vector<int32_t>, std::shared_ptr<VictimFinder>> finders;

  DisruptionLedger disruptions{state};

  std::map<int, FreeRoom> free_rooms;  // by pool

  // The cycle before took back all it had decided: claims displace each other, and in all queues
  // those go first that were promised room.
  bool promised_first = false;

  // Groups that wait, in job order, as the cycle found them.
  std::vector<GroupId> order;
  BoundPods bound;  // in this cycle
  std::vector<size_t> taken_back;
  std::set<GroupId> put_off;  // could start if others moved; see Consolidate
  // What failed at which room epoch, by what was asked: (queue, tense, shapes...).
  std::map<std::vector<int32_t>, uint64_t> failed;
  std::vector<std::shared_ptr<const std::string>> ask_words;  // by ShapeId; see decide.cc
  // Why the last victim search for a group found nothing; for the group's waiting reason.
  std::map<GroupId, std::string> search_said;

  bool Full() const { return binds >= settings.binds_per_cycle_max; }
  void WakeAt(WallTime when) {
    if (!result.wake_at || when < *result.wake_at) result.wake_at = when;
  }
};

// --- gang.cc: which pods of a group start together ---------------------------------------------
struct Needed {
  std::vector<PodId> pods;    // what the minima lack, in member order; empty: minima are met
  int32_t short_set = kNone;  // a pod set that has too few pods to reach its minimum
  bool met = true;
};
Needed NeededPods(const State& state, GroupId group);
// Members beyond the minima that wait, in member order; empty while minima are not met.
std::vector<PodId> ElasticPods(const State& state, GroupId group);
// Whether others may be stopped or moved for these pods of the group (preemptionPolicy).
bool MayPreempt(const State& state, GroupId group, const std::vector<PodId>& pods);
// Whether the group may be looked at: known, in a known queue.
bool Schedulable(const State& state, const GroupState& group);
// Whether the pods stay within the limits (and, if not preemptible, quotas) of every queue above
// them: at once, counting what terminates and still holds its room, or when that is gone. `why`
// gets a sentence when they do not.
bool FitsQueues(State& state,
                const GroupState& group,
                const std::vector<PodId>& pods,
                int pool,
                Tense tense,
                std::string* why = nullptr);
// Whether what the group's queues hold and were promised is within their limits as it is.
bool WithinLimits(State& state, const GroupState& group, int pool);
// The quota half alone: no eviction inside the queue can mend it.
bool FitsQuotas(State& state,
                const GroupState& group,
                const std::vector<PodId>& pods,
                int pool,
                std::string* why = nullptr);
// Binds (kNow) or promises (kFuture) all pods or none, heeding the group's topology.
bool PlaceAll(Statement& trial,
              State& state,
              GroupId group,
              const std::vector<PodId>& pods,
              Tense tense,
              const NodeFilter* within);

// --- decide.cc: writing decisions down ---------------------------------------------------------
void DecideBinds(Context& context, const std::vector<PodId>& pods, Action rule);
void DecideNominations(Context& context, const std::vector<PodId>& pods, Action rule);
struct EvictionCause {
  Action rule = Action::kPreempt;
  GroupId beneficiary = kNone;       // kNone: for nobody's sake
  std::vector<PodId> beneficiaries;  // the pods that get the room
  std::string why;                   // for nobody's sake: the reason
};
void DecideEvictions(Context& context,
                     const std::vector<PodId>& victims,
                     const EvictionCause& cause);
// Removes the decisions that were taken back.
void DropTakenBack(Context& context);
// GPU-seconds since the last checkpoint or the start.
double LostGpuSeconds(const State& state, PodId pod, WallTime now);

// --- reservation.cc: holding nodes for jobs that have waited long -----------------------------
void Reserve(Context& context);

// --- the actions, one file each ----------------------------------------------------------------
void Allocate(Context& context);
void Shrink(Context& context);
void Consolidate(Context& context);
void Reclaim(Context& context);
void Preempt(Context& context);
// Serves those that Consolidate put off.
void ConsolidatePutOff(Context& context);
void StaleGangs(Context& context);
void Grow(Context& context);
// Members beyond the minima, one per group and turn; what `Allocate` and `Grow` end with.
void PlaceElastic(Context& context, Action rule);

// --- explain.cc --------------------------------------------------------------------------------
void ExplainWaiting(Context& context);

}  // namespace swell::sched
