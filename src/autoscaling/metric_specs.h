// MetricSpecs: metrics with targets, in the form of autoscaling/v2: Resource, ContainerResource,
// Pods, Object and External. They are read from Kubeflow's spec.elasticPolicy.metrics and from a
// TrainingJob's spec.autoscaling.metrics.
// - Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "autoscaling/scale_target.h"
#include "base/result.h"
#include "elastic/target_scaler.h"
#include "json/value.h"

namespace swell::autoscaling {

inline constexpr std::string_view kScaleWindow = "swell.dev/autoscale-window";  // of shrinking

struct MetricSpec {
  enum class Source { kResource, kPods, kObject, kExternal };
  Source source = Source::kResource;
  std::string name;             // of the resource or the metric
  std::string container;        // whose use of the resource counts; empty: that of all
  std::string selector;         // of the metric, as a label selector's text
  std::string object_group;     // kObject: what the metric is of
  std::string object_resource;  // "services"
  std::string object_name;
  bool utilization = false;  // the target is a percentage of what the pods request
  bool average = true;
  double target = 1;
};

// A role whose members keep metrics at their targets.
struct TargetRole : ScaledRole {
  elastic::TargetPolicy policy;
  std::vector<MetricSpec> metrics;
  std::string pattern;  // by which metrics of pods are found in their logs; empty: they are not
  std::string pattern_field;  // where the job says it
};

// Nothing for a job that names no such metrics; kInvalid with the field where it asks for what can
// not be.
using ReadTargetRole = Result<std::optional<TargetRole>> (*)(const json::Value& job);
Result<std::optional<TargetRole>> PyTorchTargetRole(const json::Value& job);
Result<std::optional<TargetRole>> TrainingTargetRole(const json::Value& job);

// A list of metrics, kInvalid with the field where it is wrong.
Result<std::vector<MetricSpec>> ReadMetricSpecs(const json::Array& metrics, std::string_view field);

// Whether an entry of spec.autoscaling.metrics is one of these: it has a type.
bool IsMetricSpec(const json::Value& metric);

}  // namespace swell::autoscaling
