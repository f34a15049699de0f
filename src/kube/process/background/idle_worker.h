// IdleWorker: a thread for work of the I/O thread that takes long. What somebody waits for is done
// at once; what nobody waits for (taking things apart, making spares) when nothing has been asked
// for a moment, because the kernel's locks and the disk would hold up the pods that start now.
// - Threads: any thread but its own.
// - Ownership: joins its thread at the end, after the piece of work under way; what waits then is
//   dropped.
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"

namespace swell::edge {

class IdleWorker {
 public:
  IdleWorker();
  ~IdleWorker();
  IdleWorker(const IdleWorker&) = delete;
  IdleWorker& operator=(const IdleWorker&) = delete;

  void Post(std::function<void()> work);
  // Within a second or two even when more keeps coming. False, and not taken, when too much waits.
  bool PostIdle(std::function<void()> work);
  // Waits until everything is done.
  void Finish();

 private:
  struct Late {
    SteadyTime since;
    std::function<void()> work;
  };

  void Run();
  // How long nothing is to be done yet.
  Duration Pause() SWELL_REQUIRES(mutex_);

  RealClock clock_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> now_ SWELL_GUARDED_BY(mutex_);
  std::deque<Late> later_ SWELL_GUARDED_BY(mutex_);
  bool busy_ SWELL_GUARDED_BY(mutex_) = false;
  bool finishing_ SWELL_GUARDED_BY(mutex_) = false;
  bool stopping_ SWELL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace swell::edge
