// Cancellation: ends work that blocks on another thread, and what waits within it.
// - Threads: any thread.
#pragma once

#include <atomic>
#include <chrono>

#include "base/mutex.h"
#include "base/result.h"

namespace swell::images {

class Cancellation {
 public:
  void Cancel() {
    {
      MutexLock lock(mutex_);
      cancelled_ = true;
    }
    changed_.NotifyAll();
  }
  // Once after it is cancelled, or after that time; false when it was cancelled.
  bool Wait(std::chrono::milliseconds time) const {
    MutexLock lock(mutex_);
    if (!cancelled_) changed_.WaitFor(mutex_, time);
    return !cancelled_;
  }
  const std::atomic<bool>& flag() const { return cancelled_; }
  Status Check() const {
    return cancelled_ ? Status(Code::kUnavailable, "the pull was stopped") : Status::Ok();
  }

 private:
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace swell::images
