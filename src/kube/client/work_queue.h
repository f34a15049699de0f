// WorkQueue: which objects need reconciling. A key is worked on once at a time; what happens to it
// meanwhile makes it run again; failures come back later with exponential back-off.
//
// reconcile(key, done): done(Result) says OK (forget failures), OK with a delay (reconcile again
// then), or an error (retry with back-off, 10 ms doubling to 60 s; conflicts retry at once once).
//
// - Threads: core executor only.
// - Invariants: no two queues of a process have one name.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/callback_scope.h"
#include "base/executor.h"
#include "base/metrics.h"
#include "base/result.h"

namespace swell::client {

class WorkQueue {
 public:
  // Zero: nothing more to do until the object changes.
  using Done = std::function<void(Result<Duration>)>;
  using Reconcile = std::function<void(const std::string& key, Done done)>;

  // `metrics` may be null.
  WorkQueue(Executor& executor,
            Metrics* metrics,
            std::string name,
            size_t parallel_max,
            Reconcile reconcile);
  ~WorkQueue();

  void Add(const std::string& key);
  void AddAfter(const std::string& key, Duration delay);
  size_t depth() const { return queue_.size(); }

 private:
  void Pump();
  void Run(const std::string& key);
  void Finish(const std::string& key, const Result<Duration>& result);
  void Collect(MetricPage& page) const;

  Executor& executor_;
  std::string name_;
  size_t parallel_max_;
  Reconcile reconcile_;
  std::deque<std::string> queue_;
  std::set<std::string> queued_;
  std::set<std::string> running_;
  std::set<std::string> again_;
  std::map<std::string, int> failures_;
  std::map<std::string, std::pair<TimerId, int64_t>> delayed_;  // key → (timer, due)
  bool pump_posted_ = false;
  uint64_t adds_ = 0;
  uint64_t retries_ = 0;
  std::unique_ptr<Metrics::Registration> metrics_;
  CallbackScope scope_;
};

}  // namespace swell::client
