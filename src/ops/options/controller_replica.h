// ReplicaOptionsOf: what the scheduler and the controllers of `swell controller` are told.
// - Threads: main thread; reads the file of --grouping-rules.
#pragma once

#include "base/result.h"
#include "manager/replica.h"
#include "ops/install/cluster_survey.h"
#include "ops/options/controller_options.h"

namespace swell::ops {

// Without the recorder and the metrics. If replicas elect a leader, the caller sets the identity of
// this one.
Result<manager::ReplicaOptions> ReplicaOptionsOf(const ControllerOptions& controller,
                                                 const ClusterFacts& facts);

}  // namespace swell::ops
