// ResourceUse: what pods use of a resource according to the metrics API, relative to their
// requests. Resource and ContainerResource metrics of autoscalers are computed from it.
// - Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "autoscaling/metric_specs.h"
#include "base/result.h"
#include "elastic/target_scaler.h"

namespace swell::autoscaling {

// The path of metrics.k8s.io for the pods of a namespace.
std::string PodMetricsPath(std::string_view ns);

// "nothing at metrics.k8s.io: …" for an API that is not there.
std::string MetricsFault(std::string_view api_group, const Status& status);

// A quantity as a number; empty if `value` is null or not a quantity.
std::optional<double> AmountOf(const json::Value* value);

// Fills in what each member uses, in the target's unit. Unreadable numbers set `look.fault`.
void TakeUse(const Result<json::Value>& pod_metrics,
             const MetricSpec& spec,
             const std::vector<json::SharedValue>& members,
             elastic::MetricSample& look);

}  // namespace swell::autoscaling
