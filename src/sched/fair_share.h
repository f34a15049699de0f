// Fair shares: what each queue is due, per resource and per level of the tree, top down.
//
// (1) Each queue gets min(quota, requestable), requestable being what it runs and waits for, up to
// its limit. (2) What is left goes by queue priority, high to low, in proportion to the over-quota
// weights, in whole units, nobody getting more than is still asked; rounds go on while one of them
// satisfied somebody. (3) What is left then goes one unit each: priority, largest remainder,
// oldest, name.
//
// Thread-safety: none needed; pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sched/state.h"

namespace swell::sched {

struct ShareClaim {
  int64_t quota = kUnlimited;  // kUnlimited: all it asks
  int64_t requestable = 0;
  double weight = 1;
  int32_t priority = 100;
  WallTime creation;
  std::string name;
};

// What each claim gets of `total`; `unit` is what over-quota amounts are whole multiples of, unless
// less is asked.
std::vector<int64_t> DivideShares(int64_t total,
                                  int64_t unit,
                                  const std::vector<ShareClaim>& claims);

// By QueueId.
struct QueueShares {
  std::vector<QueueAmounts> requested;  // running and waiting, subtree included
  std::vector<QueueAmounts> fair;
};
QueueShares ComputeQueueShares(const State& state);

}  // namespace swell::sched
