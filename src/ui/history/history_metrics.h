// HistoryMetrics: the last samples of the history as Prometheus scrapes them, so that a curve of
// the pages and one of Prometheus are the same. Series that the scheduler or the job controller
// tells are left out; docs/ui.md has the table.
//
// - Threads: OnSamples on the pages' executor; made, destroyed and scraped on the core's.
// - Ownership: the Metrics may end before it.
#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "ui/history/history.h"

namespace swell::ui {

class HistoryMetrics {
 public:
  // Older samples are not told: nobody knows any more.
  static constexpr Duration kFresh = std::chrono::minutes(2);

  // `metrics` null: nobody scrapes.
  HistoryMetrics(Metrics* metrics, const Clock& clock);

  void OnSamples(const std::vector<Sample>& samples);

 private:
  void Collect(MetricPage& page) const;

  const Clock& clock_;
  mutable Mutex mutex_;
  std::vector<Sample> samples_ SWELL_GUARDED_BY(mutex_);
  SteadyTime heard_ SWELL_GUARDED_BY(mutex_);
  std::unique_ptr<Metrics::Registration> registered_;
};

}  // namespace swell::ui
