// A cluster's state in a file: a v1 List of the kinds that scheduling depends on, as from `kubectl
// get … -o json` or `swell snapshot`, and as the scheduler's inputs.
// - Threads: pure functions. Unknown kinds and fields are ignored; what cannot be read is told, one
//   line per problem that names object, field and value.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"
#include "sched/model.h"
#include "sched/past_use.h"
#include "scheduling/scheduler_settings.h"

namespace swell::scheduling {

struct StateInputs {
  std::vector<sched::NodeInfo> nodes;
  std::vector<sched::PodInfo> pods;
  std::vector<sched::GroupInfo> groups;
  std::vector<sched::QueueInfo> queues;
  std::vector<sched::PoolInfo> pools;
  std::vector<sched::TopologyInfo> topologies;
  std::vector<sched::BudgetInfo> budgets;
  std::vector<sched::PastUse> past_uses;
  SchedulerSettings settings;  // the cluster's own, where the state has them
};

// JSON or YAML; several YAML documents count as one list.
StateInputs ReadState(std::string_view text, std::vector<std::string>& problems);
StateInputs ReadStateItems(const std::vector<const json::Value*>& items,
                           std::vector<std::string>& problems);
void FillModel(const StateInputs& inputs, sched::Model& model);

}  // namespace swell::scheduling
