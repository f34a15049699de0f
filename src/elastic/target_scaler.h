// TargetScaler: how many members keep metrics at their targets: the published algorithm of
// Kubernetes' HorizontalPodAutoscaler, for jobs whose manifest names such metrics.
//
// desired = ceil(members x value / target), the maximum over all metrics. A ratio within
// `tolerance` of 1 changes nothing. Members without a value count as being at the target when the
// number would shrink, and as idle when it would grow; if that reverses the direction, the number
// stays. A metric that cannot be read prevents shrinking, not growth. Growth per interval is
// bounded (twice as many, or 4 more). Shrinking follows the highest recommendation within the
// window.
//
// - Threads: pure; the caller keeps the window. After a restart nothing shrinks
//   for a whole window.
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
struct MetricSample {
  std::string name;  // for words: "cpu", "queue_length"
  // One value per running member, empty if unknown; or of_all, one value for all of them.
  std::vector<std::optional<double>> of_members;
  // Members that have just started: their usage is not counted, but they will take load.
  int64_t unready = 0;
  std::optional<double> of_all;
  // The value to reach: the average per member, or the value for all members together.
  double target = 1;
  bool average = true;
  std::string fault;  // not empty: it can not be read, and why
};

using TargetState = PaceState;

// What the metrics ask for by themselves.
struct TargetProposal {
  int64_t replicas = 0;
  std::optional<size_t> metric;  // that asks for most; none: none can be read
  double value = 0;              // of that metric
  std::string faults;            // of the metrics that can not be read
  std::optional<size_t> faulty;  // the first of them
};

// `replicas`: wanted now; `running`: members that run.
TargetProposal ProposeReplicas(double tolerance,
                               int64_t replicas,
                               int64_t running,
                               const std::vector<MetricSample>& metrics);

struct TargetDecision {
  int64_t desired = 0;
  std::string why;     // in numbers
  std::string faults;  // of the metrics that can not be read
};

// `replicas`: wanted now; `running`: members that run.
TargetDecision DecideByTargets(const TargetPolicy& policy,
                               WallTime now,
                               int64_t replicas,
                               int64_t running,
                               const std::vector<MetricSample>& metrics,
                               TargetState& state);

}  // namespace swell::elastic
