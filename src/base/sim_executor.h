// SimExecutor: an Executor and Clock of virtual time for tests and simulation.
//
// Time moves only inside RunUntilIdle/Advance, straight to the next timer; nothing sleeps.
//
// - Threads: one thread only.
#pragma once

#include <deque>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/executor.h"

namespace swell {

class SimExecutor final : public Executor, public Clock {
 public:
  // Starts at 2026-01-01T00:00:00Z unless told otherwise.
  explicit SimExecutor(WallTime start = {1767225600LL * 1'000'000'000LL}) : start_(start) {}

  void Post(std::function<void()> fn) override;
  TimerId After(Duration delay, std::function<void()> fn) override;
  void Cancel(TimerId id) override;
  bool OnThread() const override { return true; }

  WallTime Now() const override { return start_ + Duration(now_.ns); }
  SteadyTime Steady() const override { return now_; }

  // Runs what was posted (and what that posts) without moving time. Returns closures run; stops
  // after `limit` so that a component that posts to itself for ever is a failed test, not a hang.
  size_t RunPosted(size_t limit = 10'000'000);
  // Runs everything due within `span`, moving time to each timer and at last to the end of it.
  size_t Advance(Duration span);
  // Advances timer by timer until `done` holds or `limit` has passed. Returns done().
  bool RunUntil(const std::function<bool()>& done, Duration limit);

 private:
  bool RunNextTimer(SteadyTime until);

  WallTime start_;
  SteadyTime now_;
  TimerId next_id_ = 1;
  std::deque<std::function<void()>> posted_;
  std::map<std::pair<int64_t, TimerId>, std::function<void()>> timers_;  // (due ns, id)
  std::map<TimerId, int64_t> due_;
};

}  // namespace swell
