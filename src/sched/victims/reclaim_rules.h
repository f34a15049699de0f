// Who may take back from whom: the fairness of reclaim, at every level of the queue tree.
//
// A queue may reclaim while the job keeps it within its fair share. Of every victim, look at the
// two queues just below the common ancestor: the victim's must be over what it is due before the
// loss, or the reclaimer's stays within its quota while the victim's is over its own. And at no
// level may the reclaimer's end up over its fair share and relatively better served than the
// sibling that lost. Who goes beyond its own quota leaves others what they hold within theirs: they
// could take it back at once, where quotas add up to more than there is.
//
// - Threads: none. Made for one search; reads the state as the search changes it.
#pragma once

#include <vector>

#include "sched/victims/victims.h"

namespace swell::sched {

class ReclaimRules {
 public:
  ReclaimRules(const Context& context, QueueId reclaimer, int pool, const QueueAmounts& need);

  // Whether the reclaimer's own queue stays within its fair share.
  bool MayReclaim() const;
  // Whether it and all above it do: then the job may make others move.
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
  bool StaysWithinFairShare(QueueId queue) const;
  bool StaysWithinQuota(QueueId queue) const;
  const QueueAmounts& UsedBefore(QueueId queue) const;
  const QueueAmounts& Used(QueueId queue) const;
  // Of the queue and everything under it.
  QueueAmounts LostBy(QueueId queue, const Losses& losses) const;
  bool IsUnder(QueueId queue, QueueId ancestor) const;

  const Context& context_;
  const State& state_;
  QueueId reclaimer_;
  int pool_;
  QueueAmounts need_;
  // By queue: the reclaimer's side and its own, just below the common ancestor.
  std::vector<std::pair<QueueId, QueueId>> below_;
  // What each ancestor of the reclaimer used before the search promised it anything.
  std::vector<std::pair<QueueId, QueueAmounts>> used_before_;
};

}  // namespace swell::sched
