// GoodputRole: the role of a job whose number of members follows its goodput (mode: Goodput).
// - Threads: pure functions.
#pragma once

#include <optional>

#include "autoscaling/scale_target.h"
#include "autoscaling/scaling_defaults.h"
#include "base/result.h"
#include "goodput/measurements.h"
#include "json/value.h"

namespace swell::autoscaling {

struct GoodputRole : ScaledRole {
  int64_t others = 0;            // members of the training group besides the role's
  int64_t ranks_per_member = 1;  // 0: the job does not say
  goodput::SizeBounds bounds;
  goodput::BatchRule batch = goodput::BatchRule::kConstant;
  Duration interval = std::chrono::seconds(10);
  int observations = 3;  // of a size, before it counts as measured
  // The mode is the default of: "project team-a"; empty: the job names it.
  std::string default_of;
};

// Nothing for a job that is not scaled by goodput; kInvalid with the field where it asks for what
// cannot be. `by_default`: what holds for a job that names no mode.
using ReadGoodputRole = Result<std::optional<GoodputRole>> (*)(const json::Value& job,
                                                               const ScalingDefault& by_default);
Result<std::optional<GoodputRole>> TrainingGoodputRole(const json::Value& job,
                                                       const ScalingDefault& by_default);

}  // namespace swell::autoscaling
