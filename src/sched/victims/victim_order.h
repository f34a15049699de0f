// VictimOrder: who is stopped first. The least goes first.
//
// Surplus members come before any that stop their gang; then the least work lost; the lowest
// priority; the project most over its share; the youngest; among surplus members the lowest member
// priority; and last a number that makes the order total.
// - Threads: a plain value.
#pragma once

#include <compare>
#include <cstdint>

namespace swell::sched {

struct VictimOrder {
  bool stops_gang = false;
  double cost = 0;        // GPU-seconds lost, in thousandths, for what it frees
  int32_t priority = 0;   // of the job
  int32_t over_rank = 0;  // 0: the project most over its fair share
  int64_t age_ns = 0;     // the negative of when it began or saved last: the youngest first
  int64_t member_priority = 0;
  int32_t number = 0;  // of the node or the combination
  auto operator<=>(const VictimOrder&) const = default;
};

}  // namespace swell::sched
