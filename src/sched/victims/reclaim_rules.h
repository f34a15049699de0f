// ReclaimRules: which queue may reclaim from which, at every level of the queue tree.
//
// A queue may reclaim for a job that keeps it within what it is due, its fair share or its quota
// (QueueShares::Due). For each victim, the rules compare the two queues just below the common
// ancestor:
//   - the victim's queue must hold more than it is due before the loss, or the reclaiming queue
//     stays within its quota while the victim's queue is over its own;
//   - at no level may the reclaiming queue end up over what it is due and relatively better served
//     than the queue that lost;
//   - a queue beyond its own quota may not take what others hold within theirs. They could take it
//     back at once if quotas add up to more than the cluster has.
//
// - Threads: none. Made for one search; reads the state as the search changes it.
#pragma once

#include <vector>

#include "sched/victims/victims.h"

namespace swell::sched {

// Whether the queue stays within what it is due with `need`; only then may it reclaim.
bool StaysWithinDue(const CycleContext& context, QueueId queue, int pool, const QueueAmounts& need);

class ReclaimRules {
 public:
  ReclaimRules(const CycleContext& context, QueueId reclaimer, int pool, const QueueAmounts& need);

  // What the reclaimer uses is what the state shows now, less what these pods were promised: some
  // of its own work goes, too.
  void ReadUse(const std::vector<PodId>& pods);
  // Whether the reclaimer's own queue and all above it stay within what they are due: then the job
  // may make others move.
  bool MayMoveOthers() const;
  // Whether a victim queue may lose `more`, given the state and what goes with it.
  bool Allows(QueueId victim, const Losses& losses, const QueueAmounts& more) const;
  // Whether a victim of so much, its queue being left as the state shows, is to be left alone.
  bool WithinItsQuota(QueueId victim, const QueueAmounts& charge) const;
  // The queues that hold more than they are due or than their quota; no other may lose anything.
  std::vector<QueueId> MayLose() const;
  // The victim's ancestor (or itself) just below the common ancestor with the reclaimer.
  QueueId BelowCommon(QueueId victim) const { return below_[victim].second; }

 private:
  bool StaysWithinQuota(QueueId queue) const;
  const QueueAmounts& UsedBefore(QueueId queue) const;
  const QueueAmounts& Used(QueueId queue) const;
  // The loss of the queue and of everything under it.
  QueueAmounts LostBy(QueueId queue, const Losses& losses) const;
  bool IsUnder(QueueId queue, QueueId ancestor) const;

  const CycleContext& context_;
  const State& state_;
  int pool_;
  QueueAmounts need_;
  // By queue: the reclaimer's side and its own, just below the common ancestor.
  std::vector<std::pair<QueueId, QueueId>> below_;
  // What each ancestor of the reclaimer used before the search promised it anything.
  std::vector<std::pair<QueueId, QueueAmounts>> used_before_;
};

}  // namespace swell::sched
