// MakeHealthSource: what checks the nodes of `swell up` and `swell agent`.
// - Threads: the core thread; the source has one of its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/executor.h"
#include "base/result.h"
#include "cli/flags.h"
#include "kube/node/runtime/health_source.h"
#include "kube/node/spec/node_config.h"

namespace swell::ops {

struct HealthPlan {
  std::string scripts_dir;  // empty: no scripts
};
void AddHealthFlag(cli::Flags& flags, HealthPlan& plan);
// Misuse unless the directory exists; makes its path absolute.
Status CheckHealthPlan(HealthPlan& plan);

// Null if there is nothing to check: nodes with simulated pods have no machine, only scripts.
std::unique_ptr<node::HealthSource> MakeHealthSource(Executor& core,
                                                     const HealthPlan& plan,
                                                     const std::string& data_dir,
                                                     bool has_processes,
                                                     const std::vector<node::NodeConfig>& nodes);

}  // namespace swell::ops
