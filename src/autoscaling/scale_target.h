// ScaleTarget: the role of a job that is scaled by metrics, its bounds, and how it is observed.
// Each kind of job that can be scaled has a function that reads it.
// - Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "elastic/metric_scaler.h"
#include "json/value.h"

namespace swell::autoscaling {

// Annotations of jobs whose API has no fields for these.
inline constexpr std::string_view kScaleInterval = "swell.dev/autoscale-interval";  // "30s", "2s"
inline constexpr std::string_view kScaleObservations = "swell.dev/autoscale-observations";
inline constexpr std::string_view kScaleStep = "swell.dev/autoscale-step";  // AddOne, Double
inline constexpr std::string_view kScalePattern = "swell.dev/autoscale-pattern";
// What the autoscaler remembers; without it scaling starts anew.
inline constexpr std::string_view kScaleMemory = "swell.dev/elastic-scaling";

// A role whose number of members is somebody's to set.
struct ScaledRole {
  std::string role;
  std::vector<std::string> path;  // of the number of replicas in the job
  int64_t replicas = 0;
};

struct ScaleTarget : ScaledRole {
  int64_t others = 0;  // members of the training group besides the role's
  json::Value pod_template;
  elastic::ScalePolicy policy;
  std::string pattern;        // empty: the usual one
  std::string pattern_field;  // where the job says it
  std::string metric;         // by which pods may push it
};

// Nothing for a job that is not scaled by metrics; kInvalid with the field where it asks for what
// cannot be.
using ReadScaleTarget = Result<std::optional<ScaleTarget>> (*)(const json::Value& job);
Result<std::optional<ScaleTarget>> KubedlScaleTarget(const json::Value& job);
Result<std::optional<ScaleTarget>> TrainingScaleTarget(const json::Value& job);

// An object that has nothing but the value at that path.
json::Value AtPath(const std::vector<std::string>& path, json::Value value);

// The time that an annotation of the job says, if it has it ("30s"), at most a day; kInvalid with
// the field.
inline constexpr Duration kScaleIntervalMin = std::chrono::milliseconds(1);
Status ReadScaleTime(const json::Value& job,
                     std::string_view annotation,
                     Duration least,
                     Duration& time);

}  // namespace swell::autoscaling
