// The victim search: whom to stop so that given pods can start, at the least cost.
//
// Answers a plan, "impossible, because", or "budget spent". A plan is minimal: none of its units
// can be spared. Units are what is stopped together: one surplus member, one pod of a group whose
// pods are stopped singly, or a whole gang.
//
// Thread-safety: none. Works on a State through a Statement: on a plan, the evictions and promises
// are in it, uncommitted; otherwise it is as before.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sched/context.h"

namespace swell::sched {

struct VictimPolicy {
  // Whether anything of the group may be taken for these pods at all.
  std::function<bool(const GroupState&)> eligible;
  // Only members beyond the minimum: nobody is stopped.
  bool surplus_only = false;
  // Called when the plan stands, to veto it; may be empty.
  std::function<bool()> acceptable;
};

struct VictimPlan {
  enum class Outcome { kPlan, kImpossible, kBudgetSpent };
  Outcome outcome = Outcome::kImpossible;
  std::vector<PodId> victims;  // in the order they are told
  std::string because;         // for people, when there is no plan
};

VictimPlan FindVictims(Context& context,
                       Statement& trial,
                       GroupId group,
                       const std::vector<PodId>& pods,
                       const VictimPolicy& policy);

}  // namespace swell::sched
