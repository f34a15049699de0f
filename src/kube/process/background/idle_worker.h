// IdleWorker: a thread, or a few, for long work of the I/O thread.
//
// Posted work is done at once. Idle work (removing trees, making spares) waits until nothing was
// posted for a moment: it contends with starting pods for the kernel's locks and the disk.
//
// - Threads: any but its own.
// - Ownership: the destructor waits for the work under way; work that waits is dropped.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"

namespace swell::process {

class IdleWorker {
 public:
  explicit IdleWorker(int threads = 1);
  ~IdleWorker();
  IdleWorker(const IdleWorker&) = delete;
  IdleWorker& operator=(const IdleWorker&) = delete;

  void Post(std::function<void()> work);
  // Starts within a second or two even if more is posted. False: too much waits, it is not taken.
  bool PostIdle(std::function<void()> work);
  // Waits until everything is done.
  void Finish();

 private:
  struct Idle {
    SteadyTime since;
    std::function<void()> work;
  };

  void Run();
  // The time until the first idle work may start.
  Duration Pause() SWELL_REQUIRES(mutex_);

  RealClock clock_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> posted_ SWELL_GUARDED_BY(mutex_);
  std::deque<Idle> idle_ SWELL_GUARDED_BY(mutex_);
  int busy_ SWELL_GUARDED_BY(mutex_) = 0;
  bool finishing_ SWELL_GUARDED_BY(mutex_) = false;
  bool stopping_ SWELL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace swell::process
