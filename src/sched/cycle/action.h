// Action: something that a scheduling cycle does, and how people are told of it.
// - Threads: none; the scheduler's thread. An action has no state of its own.
// - Invariants: Run tries on the state under a Statement and commits a change whole or not at all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sched/state/shape.h"

namespace swell::sched {

struct CycleContext;

// Evictions that are decided together.
struct EvictionPlan {
  std::vector<PodId> victims;
  GroupId beneficiary = kNone;       // kNone: nobody needs the room
  std::vector<PodId> beneficiaries;  // the pods that get the room
};

class Action {
 public:
  virtual ~Action() = default;
  // In decisions, metrics, records and `swell simulate --actions`. Lives as long as the program.
  virtual std::string_view Name() const = 0;
  virtual void Run(CycleContext& context) const = 0;
  // Why the victim is evicted, for people: "priority 100 is above 50". Two victims of one plan
  // whose queues and priorities are equal have the same reason.
  virtual std::string Reason(const CycleContext& /*context*/,
                             const EvictionPlan& /*evictions*/,
                             PodId /*victim*/) const {
    return {};
  }
  // The reason of the Event on an evicted pod; empty for an action that evicts nothing.
  virtual std::string_view Event() const { return {}; }
};

}  // namespace swell::sched
