// BackgroundQueue: work for a thread of its own, one item after the other, that nobody waits for:
// what a slow disk may delay.
//
// Ownership: destroying it works off what is waiting and ends the thread; what the work uses
// outlives it. Thread-safety: Push from any thread; the work runs on the queue's thread.
// Invariants: items wait in order, and in no more than bytes_max, or one of them alone.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <utility>

#include "base/mutex.h"

namespace swell {

template <class Item>
class BackgroundQueue {
 public:
  BackgroundQueue(size_t bytes_max, std::function<void(Item)> work)
      : bytes_max_(bytes_max), work_(std::move(work)), thread_([this] { Run(); }) {}

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
    {
      MutexLock lock(mutex_);
      if (!waiting_.empty() && waiting_bytes_ + bytes > bytes_max_) return false;
      waiting_bytes_ += bytes;
      waiting_.emplace_back(std::move(item), bytes);
    }
    changed_.NotifyAll();
    return true;
  }

 private:
  void Run() {
    while (true) {
      std::pair<Item, size_t> next;
      {
        MutexLock lock(mutex_);
        while (waiting_.empty() && !ending_) changed_.Wait(mutex_);
        if (waiting_.empty()) return;
        next = std::move(waiting_.front());
        waiting_.pop_front();
        waiting_bytes_ -= next.second;
      }
      work_(std::move(next.first));
    }
  }

  const size_t bytes_max_;
  const std::function<void(Item)> work_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::pair<Item, size_t>> waiting_ SWELL_GUARDED_BY(mutex_);
  size_t waiting_bytes_ SWELL_GUARDED_BY(mutex_) = 0;
  bool ending_ SWELL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace swell
