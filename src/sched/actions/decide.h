// Decisions written down: the only place where a cycle makes strings of what it did.
// - Threads: none; the scheduler's thread. What is decided is assumed in the state at once.
#pragma once

#include <string>
#include <vector>

#include "sched/cycle/context.h"

namespace swell::sched {

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

}  // namespace swell::sched
