// Timer: one pending call on an executor, cancelled when the timer is destroyed.
// - Threads: the executor's own.
// - Ownership: the executor outlives the timer. The call may destroy the timer.
#pragma once

#include <functional>
#include <utility>

#include "base/executor.h"

namespace swell {

class Timer {
 public:
  explicit Timer(Executor& executor) : executor_(&executor) {}
  ~Timer() { Cancel(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Replaces the pending call.
  void Start(Duration delay, std::function<void()> fn) {
    Cancel();
    id_ = executor_->After(delay, [this, fn = std::move(fn)] {
      id_ = kNoTimer;
      fn();
    });
  }
  void Cancel() { executor_->Cancel(std::exchange(id_, kNoTimer)); }
  bool pending() const { return id_ != kNoTimer; }

 private:
  Executor* executor_;
  TimerId id_ = kNoTimer;
};

}  // namespace swell
