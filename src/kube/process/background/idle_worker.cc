#include "kube/process/background/idle_worker.h"

#include <algorithm>
#include <utility>

namespace swell::process {
namespace {

constexpr Duration kQuiet = std::chrono::milliseconds(100);
constexpr Duration kIdleWaitMax = std::chrono::seconds(1);
constexpr size_t kIdleMax = 10'000;

}  // namespace

IdleWorker::IdleWorker(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

IdleWorker::~IdleWorker() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

void IdleWorker::Post(std::function<void()> work) {
  {
    MutexLock lock(mutex_);
    posted_.push_back(std::move(work));
  }
  changed_.NotifyAll();
}

bool IdleWorker::PostIdle(std::function<void()> work) {
  {
    MutexLock lock(mutex_);
    if (idle_.size() >= kIdleMax) return false;
    idle_.push_back({clock_.Steady(), std::move(work)});
  }
  changed_.NotifyAll();
  return true;
}

void IdleWorker::Finish() {
  MutexLock lock(mutex_);
  finishing_ = true;
  changed_.NotifyAll();
  while (busy_ > 0 || !posted_.empty() || !idle_.empty()) changed_.Wait(mutex_);
  finishing_ = false;
}

Duration IdleWorker::Pause() {
  if (finishing_) return Duration::zero();
  SteadyTime at = std::min(idle_.back().since + kQuiet, idle_.front().since + kIdleWaitMax);
  return at - clock_.Steady();
}

void IdleWorker::Run() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (posted_.empty() && idle_.empty()) {
      changed_.Wait(mutex_);
      continue;
    }
    std::function<void()> work;
    if (!posted_.empty()) {
      work = std::move(posted_.front());
      posted_.pop_front();
    } else if (Duration pause = Pause(); pause > Duration::zero()) {
      changed_.WaitFor(mutex_, pause);
      continue;
    } else {
      work = std::move(idle_.front().work);
      idle_.pop_front();
    }
    ++busy_;
    mutex_.Unlock();
    work();
    work = nullptr;
    mutex_.Lock();
    --busy_;
    changed_.NotifyAll();
  }
}

}  // namespace swell::process
