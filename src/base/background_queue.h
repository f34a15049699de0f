// BackgroundQueue: work for a thread of its own that nobody waits for: what a slow disk may delay.
// The thread takes all that waits at once; with `gather` it lets items come for so long after the
// first, so that many cost one turn.
// - Threads: push from any thread; the work runs on the queue's thread.
// - Ownership: destroying it works off what is waiting and ends the thread; what the work uses
//   outlives it.
// - Invariants: items keep their order. Waiting items take at most bytes_max, except that one
//   larger item may wait alone. A second batch of that size may be in work.
#pragma once

#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"

namespace swell {

template <class Item>
class BackgroundQueue {
 public:
  using Work = std::function<void(std::vector<Item>)>;

  BackgroundQueue(size_t bytes_max, Duration gather, Work work)
      : bytes_max_(bytes_max),
        gather_(gather),
        work_(std::move(work)),
        thread_([this] { Run(); }) {}

  ~BackgroundQueue() {
    {
      MutexLock lock(mutex_);
      ending_ = true;
    }
    changed_.NotifyAll();
    thread_.join();
  }

  // False when there is no room: the item is not worked on.
  bool Push(Item item, size_t bytes) {
    bool first = false;
    {
      MutexLock lock(mutex_);
      first = waiting_.empty();
      if (!first && waiting_bytes_ + bytes > bytes_max_) return false;
      waiting_bytes_ += bytes;
      waiting_.push_back(std::move(item));
    }
    if (first) changed_.NotifyAll();
    return true;
  }

 private:
  void Run() {
    while (true) {
      std::vector<Item> next;
      {
        MutexLock lock(mutex_);
        while (waiting_.empty() && !ending_) changed_.Wait(mutex_);
        if (waiting_.empty()) return;
        // Nobody calls meanwhile but the end: were it woken for nothing, less would be gathered.
        if (gather_ > Duration::zero() && !ending_) changed_.WaitFor(mutex_, gather_);
        next.swap(waiting_);
        waiting_bytes_ = 0;
      }
      work_(std::move(next));
    }
  }

  const size_t bytes_max_;
  const Duration gather_;
  const Work work_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<Item> waiting_ SWELL_GUARDED_BY(mutex_);
  size_t waiting_bytes_ SWELL_GUARDED_BY(mutex_) = 0;
  bool ending_ SWELL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace swell
