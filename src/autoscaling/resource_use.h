// What pods use of a resource, as the metrics API tells it, beside what they request: the numbers
// of autoscaling's Resource and ContainerResource metrics.
// - Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "autoscaling/metric_specs.h"
#include "base/result.h"
#include "elastic/target_scaler.h"

namespace swell::controllers {

// Where metrics.k8s.io tells of the pods of a namespace.
std::string PodMetricsPath(std::string_view ns);

// "nothing at metrics.k8s.io: …" for an API that is not there.
std::string MetricsFault(std::string_view api_group, const Status& status);

// A quantity as a number; nothing where there is none.
std::optional<double> AmountOf(const json::Value* value);

// Fills in what each member uses, in the target's terms; what cannot be read is the look's fault.
void TakeUse(const Result<json::Value>& pod_metrics,
             const MetricSpec& spec,
             const std::vector<json::SharedValue>& members,
             elastic::MetricLook& look);

}  // namespace swell::controllers
