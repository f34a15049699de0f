#include "kube/client/work_queue.h"

#include <algorithm>

#include "base/log.h"

namespace swell::client {

WorkQueue::WorkQueue(Executor& executor,
                     Metrics* metrics,
                     std::string name,
                     size_t parallel_max,
                     Reconcile reconcile)
    : executor_(executor),
      name_(std::move(name)),
      parallel_max_(parallel_max),
      reconcile_(std::move(reconcile)),
      metrics_(RegisterMetrics(metrics, [this](MetricPage& page) { Collect(page); })) {}

WorkQueue::~WorkQueue() {
  for (const auto& [key, timer] : delayed_) executor_.Cancel(timer.first);
}

void WorkQueue::Add(const std::string& key) {
  if (running_.contains(key)) {
    again_.insert(key);
    return;
  }
  if (!queued_.insert(key).second) return;
  ++adds_;
  queue_.push_back(key);
  Pump();
}

void WorkQueue::AddAfter(const std::string& key, Duration delay) {
  if (delay.count() <= 0) return Add(key);
  // The earliest time wins; the timers' order is enough to compare, as delays are short.
  auto it = delayed_.find(key);
  if (it != delayed_.end()) {
    if (it->second.second <= delay.count()) return;
    executor_.Cancel(it->second.first);
  }
  TimerId timer = executor_.After(delay, [this, key] {
    delayed_.erase(key);
    Add(key);
  });
  delayed_[key] = {timer, delay.count()};
}

void WorkQueue::Pump() {
  if (pump_posted_) return;
  pump_posted_ = true;
  executor_.Post(scope_.Wrap([this] {
    pump_posted_ = false;
    while (!queue_.empty() && running_.size() < parallel_max_) {
      std::string key = std::move(queue_.front());
      queue_.pop_front();
      queued_.erase(key);
      Run(key);
    }
  }));
}

void WorkQueue::Run(const std::string& key) {
  running_.insert(key);
  reconcile_(key,
             scope_.Wrap([this, key](const Result<Duration>& result) { Finish(key, result); }));
}

void WorkQueue::Finish(const std::string& key, const Result<Duration>& result) {
  running_.erase(key);
  bool again = again_.erase(key) > 0;
  if (result.ok()) {
    failures_.erase(key);
    if (result->count() > 0) AddAfter(key, *result);
  } else {
    // What else looked at it in vain before its time says nothing of how long to wait.
    int& failures = failures_[key];
    if (failures == 0 || !delayed_.contains(key)) ++failures;
    ++retries_;
    auto delay =
        std::chrono::milliseconds(std::min<int64_t>(60'000, 5LL << std::min(failures, 14)));
    if (result.status().code() != Code::kConflict) {
      SWELL_LOG_WARNING("controllers", "reconcile failed; will retry", {"queue", name_},
                        {"key", key}, {"error", result.status().ToString()});
    }
    AddAfter(key, delay);
  }
  if (again) Add(key);
  Pump();
}

void WorkQueue::Collect(MetricPage& page) const {
  using enum MetricType;
  auto add = [&](std::string_view name, MetricType type, std::string_view help, auto value) {
    page.Add({name, type, help, {"name"}}, {name_}, static_cast<double>(value));
  };
  add("workqueue_depth", kGauge, "Objects that wait in the queue.", queue_.size());
  add("workqueue_delayed", kGauge, "Objects that are queued for a later time.", delayed_.size());
  add("workqueue_running", kGauge, "Objects being reconciled now.", running_.size());
  add("workqueue_adds_total", kCounter, "Objects added to the queue.", adds_);
  add("workqueue_retries_total", kCounter, "Reconciliations that failed.", retries_);
}

}  // namespace swell::client
