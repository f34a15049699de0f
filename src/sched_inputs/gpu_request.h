// The GPUs that a pod requests in its annotations, and what is wrong with the request. An invalid
// fraction must not be read as zero: the pod would run without a GPU.
// - Threads: pure functions.
#pragma once

#include <optional>
#include <string_view>

#include "base/status.h"
#include "json/value.h"

namespace swell::sched_inputs {

// What a pod may ask for at least: the scheduler charges no less (kSharePpmMin).
inline constexpr double kGpuFractionMin = 0.01;

// Above 0 and at most 1.
std::optional<double> ParseGpuFraction(std::string_view text);

// kInvalid with the first annotation that cannot be what it should. `pod` may be a pod template, at
// the field `at` ("spec.roles.worker.template.").
Status ValidateGpuRequest(const json::Value& pod, std::string_view at = {});
// The same, and whether the containers' amounts are ones that the API server will take of its pods.
Status CheckTemplateAsks(const json::Value& pod_template, std::string_view at);

}  // namespace swell::sched_inputs
