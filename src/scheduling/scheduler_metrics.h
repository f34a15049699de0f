// SchedulerMetrics: the scheduler's Prometheus metrics: cycles, decisions by rule, waiting times,
// shares of projects, GPUs of nodes and jobs.
// - Threads: core executor only.
// - Ownership: model, statistics and clock outlive it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/metrics.h"
#include "sched/model.h"
#include "sched/scheduler.h"

namespace swell::scheduling {

struct SchedulerLoopStats {
  int64_t binds = 0;
  int64_t evictions = 0;
  int64_t refused = 0;
};

class SchedulerMetrics {
 public:
  // `metrics` may be null.
  SchedulerMetrics(Metrics* metrics,
                   const Clock& clock,
                   const sched::Model& model,
                   const sched::Scheduler& scheduler,
                   const SchedulerLoopStats& stats);

  void OnCycle(Duration took);
  void OnEviction(const sched::Decision& eviction);
  // Work of the project got its places, having waited that long.
  void OnStart(std::string_view project, Duration waited);

 private:
  void BeginCounters();
  void Collect(MetricPage& page) const;
  void CollectCycles(MetricPage& page) const;
  void CollectProjects(MetricPage& page) const;
  void CollectNodes(MetricPage& page) const;
  void CollectJobs(MetricPage& page) const;

  const Clock& clock_;
  const sched::Model& model_;
  const sched::Scheduler& scheduler_;
  const SchedulerLoopStats& stats_;
  HistogramVec cycles_;
  CounterVec evictions_;
  CounterVec lost_;
  HistogramVec waits_;
  std::unique_ptr<Metrics::Registration> registered_;
};

}  // namespace swell::scheduling
