// GoodputTurns: who gets a turn among jobs of equal rights that say what they would make of it.
//
// Members beyond their gangs' minima are placed in turns, in the order of QueueOrder. Jobs of one
// queue and priority whose goodput curves are known exchange the turns that they have among them:
// each turn goes to the job to which a member is worth most per GPU. So other jobs have their turns
// as if there were no curves, and these jobs together get as much as without curves.
//
// - Threads: none. Lives for one action.
// - Invariants: equal worth is decided by job order.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "sched/state/state.h"

namespace swell::sched {

// What the next member, this pod, is worth per GPU; 0: nothing, or not known.
int64_t WorthOf(const State& state, GroupId group, PodId pod);
// Members that the curve of the group counts: those that hold room or were promised some.
int64_t CurveMembers(const State& state, GroupId group);

class GoodputTurns {
 public:
  explicit GoodputTurns(const State& state) : state_(state) {}

  // The members of the group that wait, the next one last. Groups come in job order.
  void Add(GroupId group, std::vector<PodId> pods);
  bool Waits(GroupId group) const;
  PodId Next(GroupId group) const { return waiting_.at(group).back(); }
  // The group that has the turn of `group`, which waits or whose lane does. kNone: nobody waits.
  GroupId HasTurnOf(GroupId group) const;
  // The next pod of the group has had its turn.
  void Taken(GroupId group);
  // Its next pod; the group's worth has changed with the state.
  void Renew(GroupId group);

 private:
  using Lane = std::pair<QueueId, int32_t>;           // queue and priority
  using Key = std::tuple<int64_t, int32_t, GroupId>;  // worth, negative; job order
  Lane LaneOf(GroupId group) const;

  const State& state_;
  std::map<GroupId, std::vector<PodId>> waiting_;  // in reverse
  std::map<GroupId, int32_t> order_;
  std::map<Lane, std::set<Key>> lanes_;  // of groups with curves
  std::map<GroupId, Key> keys_;          // as listed in their lanes
};

}  // namespace swell::sched
