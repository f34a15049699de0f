// TargetScaler: how many members keep metrics at their targets: the published algorithm of
// Kubernetes' HorizontalPodAutoscaler, for jobs whose manifest names such metrics.
//
// desired = ceil(members x value / target), the most that any metric asks for; a ratio within
// `tolerance` of 1 changes nothing. Members that a metric is not known of count as being at the
// target where the number would shrink, and as idle where it would grow; when that turns the
// decision round, there is none. A metric that can not be read stops shrinking, not growth. Growth
// is bounded per look (twice as many, or 4 more); shrinking follows the highest number that was
// asked for within the window.
//
// - Threads: pure; the caller keeps the window. A scaler that starts anew shrinks no sooner than a
//   whole window later.
// - Invariants: min <= desired <= max.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "elastic/replica_pace.h"

namespace swell::elastic {

struct TargetPolicy {
  int64_t replicas_min = 1;
  int64_t replicas_max = 1;
  double tolerance = 0.1;
  Duration interval = std::chrono::seconds(15);
  Duration window = std::chrono::seconds(300);  // of shrinking
};

// One metric at a look.
struct MetricLook {
  std::string name;  // for words: "cpu", "queue_length"
  // Of each member that runs, empty: not known of it. Or one number about all of them.
  std::vector<std::optional<double>> of_members;
  // Members that have just begun: what they use says nothing, and they will take their part.
  int64_t unready = 0;
  std::optional<double> of_all;
  // What the number is to be: of a member on average, or of all of them together.
  double target = 1;
  bool average = true;
  std::string fault;  // not empty: it can not be read, and why
};

using TargetState = PaceState;

// What the metrics ask for by themselves.
struct TargetWish {
  int64_t replicas = 0;
  std::optional<size_t> metric;  // that asks for most; none: none can be read
  double value = 0;              // of that metric
  std::string faults;            // of the metrics that can not be read
  std::optional<size_t> faulty;  // the first of them
};

// `replicas`: wanted now; `running`: members that run.
TargetWish WishOfTargets(double tolerance,
                         int64_t replicas,
                         int64_t running,
                         const std::vector<MetricLook>& metrics);

struct TargetDecision {
  int64_t desired = 0;
  std::string why;     // in numbers
  std::string faults;  // of the metrics that can not be read
};

// `replicas`: wanted now; `running`: members that run.
TargetDecision LookAtTargets(const TargetPolicy& policy,
                             WallTime now,
                             int64_t replicas,
                             int64_t running,
                             const std::vector<MetricLook>& metrics,
                             TargetState& state);

}  // namespace swell::elastic
