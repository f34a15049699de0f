// The victim search: whom to stop so that given pods can start, at the least cost.
//
// The answer is a plan, "impossible, because", or "budget spent". Victims come in units: one
// surplus member, one pod of a group whose pods are stopped singly, or a whole gang. A plan is
// minimal: it needs every unit that it has. It has none if others have made room in the same cycle.
// A victim that finds another place is moved: it is evicted and promised that place.
//
// - Threads: none. Works on a State through a Statement: on a plan, the evictions and promises are
//   in it, uncommitted; otherwise it is as before.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sched/cycle/context.h"
#include "sched/state/statement.h"

namespace swell::sched {

// What a plan in the making would take, beside what the state already shows: from each queue, and
// from disruption budgets, by their number in the ledger.
struct Losses {
  std::vector<std::pair<QueueId, QueueAmounts>> queues;
  std::vector<std::pair<size_t, int64_t>> budgets;
};
void AddLoss(Losses& losses, QueueId queue, const QueueAmounts& amounts, int sign = 1);

struct VictimPolicy {
  int pool = kNone;  // victims and places are of this pool; kNone: of any
  // Only members beyond the minimum: nobody is stopped.
  bool surplus_only = false;
  // The queues whose work may go at all.
  std::vector<QueueId> from;
  // Every victim must find another place.
  bool must_move = false;
  // Whether anything of the group may be taken for these pods at all; asked once per group.
  std::function<bool(const GroupState&)> eligible;
  // The room is owed to others. So nothing that the victims' owners set themselves protects a
  // victim of another queue: neither a group's minimum run time nor a disruption budget.
  bool takes_back = false;
  // Whether the job's queue may hold what the state shows and these pods besides. While it may not,
  // more of the queue's own work goes. Null: limits alone decide.
  std::function<bool(const std::vector<PodId>&)> may_hold;
  // How long after its start the group is not stopped; null: as the group says.
  std::function<Duration(const GroupState&)> min_runtime;
  // Whether work of a queue may go, given what goes with it; null: yes. More losses never help.
  std::function<bool(QueueId, const Losses&, const QueueAmounts& more)> allows;
  // True if the victim fits within its queue's quota under this plan: it must then move to another
  // node and may not be stopped. May be null.
  std::function<bool(QueueId, const QueueAmounts& charge)> protects;
};

struct VictimPlan {
  enum class Outcome { kPlan, kImpossible, kBudgetSpent };
  Outcome outcome = Outcome::kImpossible;
  std::vector<PodId> victims;  // in the order in which they are evicted; moved ones have a promise
  std::string because;         // for people, when there is no plan
};

// Keeps what it learned about the nodes between searches of one searcher.
VictimPlan FindVictims(CycleContext& context,
                       Statement& trial,
                       GroupId group,
                       const std::vector<PodId>& pods,
                       const SearcherKey& searcher,
                       const VictimPolicy& policy);

}  // namespace swell::sched
