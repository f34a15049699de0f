// Executor: one thread of control that runs closures to completion, in order, and timers.
//
// Every component above the sockets lives on one Executor (the "core" thread in production, the
// test's own thread in simulation) and needs no locks.
//
// - Threads: Post may be called from any thread, everything else on the executor's own.
// - Invariants: closures never block. Posted closures run in the order posted, and timers due at
//   the same instant in the order they were set, so that a simulation replays exactly.
#pragma once

#include <cstdint>
#include <functional>

#include "base/clock.h"

namespace swell {

using TimerId = uint64_t;
inline constexpr TimerId kNoTimer = 0;

class Executor {
 public:
  virtual ~Executor() = default;

  // Runs `fn` later on the executor's thread. May be called from any thread.
  virtual void Post(std::function<void()> fn) = 0;

  // The rest may be called only on the executor's thread.
  virtual TimerId After(Duration delay, std::function<void()> fn) = 0;
  // Cancels a timer; after it has run (or for kNoTimer) it is a no-op.
  virtual void Cancel(TimerId id) = 0;
  virtual bool OnThread() const = 0;
};

}  // namespace swell
