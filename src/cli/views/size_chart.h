// How an elastic job's size went, as a small chart of characters and a list of its changes.
// - Threads: pure functions.
#pragma once

#include <string>

#include "base/clock.h"
#include "kube/api/objects/job.h"

namespace swell::cli {

struct ChartSize {
  int width = 60;
  int height = 8;
};

// `until` is now, or when the job ended. Empty without history.
std::string SizeChart(const api::JobSize& job, WallTime until, ChartSize size = {});
// "AGE  REPLICAS  THROUGHPUT  REASON", the newest first, at most `most` lines.
std::string SizeChanges(const api::JobSize& job, WallTime now, size_t most = 10);

}  // namespace swell::cli
