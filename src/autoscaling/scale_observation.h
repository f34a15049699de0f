// ScaleObservation: when an autoscaler last observed a job, and helpers that read what its members
// report: metrics that they push, and the tail of their logs.
// - Threads: values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "json/value.h"

namespace swell::autoscaling {

struct ScaleObservation {
  std::string uid;       // of what is scaled
  uint64_t version = 0;  // resourceVersion after our last write
  std::optional<SteadyTime> looked;
  std::string complaint;
};

// The time until the next look. Zero: it is due, and `now` is remembered as its time.
Duration UntilNextLook(ScaleObservation& look, SteadyTime now, Duration interval);

// The query for the end of the log of the pod's first container.
std::string LogTailQuery(const json::Value& pod, int lines, int bytes);

// A number that the pod has pushed by that name.
std::optional<double> PushedMetric(const json::Value& pod, std::string_view metric);

}  // namespace swell::autoscaling
