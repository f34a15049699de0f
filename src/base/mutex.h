// Mutex and friends with clang's thread-safety annotations (libstdc++'s carry none).
// - Threads: any.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define SWELL_ANNOTATE(x) __attribute__((x))
#else
#define SWELL_ANNOTATE(x)
#endif

#define SWELL_GUARDED_BY(m) SWELL_ANNOTATE(guarded_by(m))
#define SWELL_REQUIRES(...) SWELL_ANNOTATE(requires_capability(__VA_ARGS__))

namespace swell {

class SWELL_ANNOTATE(capability("mutex")) Mutex {
 public:
  void Lock() SWELL_ANNOTATE(acquire_capability()) { mutex_.lock(); }
  void Unlock() SWELL_ANNOTATE(release_capability()) { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class SWELL_ANNOTATE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) SWELL_ANNOTATE(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() SWELL_ANNOTATE(release_capability()) { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class CondVar {
 public:
  void Wait(Mutex& mutex) SWELL_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // Returns after that time at the latest.
  void WaitFor(Mutex& mutex, std::chrono::nanoseconds longest) SWELL_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    condition_.wait_for(lock, longest);
    lock.release();
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace swell
