// Lending limits: how much of a project's quota others may use while it is idle.
//
// A project lends at most its lending limit, and keeps the rest of its quota for itself. Work
// beyond its own quota must leave free what other projects keep and do not hold. The kept part is
// an amount and lies on no particular nodes. The idea is Kueue's (`lendingLimit`, KEP 1224).
//
// - Threads: none; pure functions over a State.
#pragma once

#include <string>

#include "sched/state/state.h"

namespace swell::sched {

// Whether queues that keep a part of their quotas would still have it if work of `borrower` took
// `more` of the pool. If not, `why` gets a sentence. Work within the quotas above it is never
// refused. `count_leaving`: pods that terminate still hold their room.
bool FitsLending(const State& state,
                 QueueId borrower,
                 const QueueAmounts& more,
                 size_t pool,
                 bool count_leaving,
                 std::string* why);

}  // namespace swell::sched
