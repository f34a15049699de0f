// Lending limits: how much of a project's quota others may use while it is idle.
//
// A project keeps its quota less its lending limit for itself. Work of others that goes beyond a
// quota of its own must leave what they keep and do not hold. The kept part is an amount and lies
// on no particular nodes. The idea is Kueue's (`lendingLimit`, KEP 1224).
//
// - Threads: none; pure functions over a State.
#pragma once

#include <string>

#include "sched/state/state.h"

namespace swell::sched {

// Whether the queues that keep some of their quotas would still have it if work of `borrower` took
// `more` of the pool; `count_leaving`: while what terminates still holds its room. Work within the
// quotas above it is never refused. `why` gets a sentence when they would not.
bool FitsLending(const State& state,
                 QueueId borrower,
                 const QueueAmounts& more,
                 size_t pool,
                 bool count_leaving,
                 std::string* why);

}  // namespace swell::sched
