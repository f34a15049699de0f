// What is wrong with nodes, in the words of all commands.
// - Threads: values; functions that ask the server block on its loop.
#pragma once

#include <string>
#include <vector>

#include "cli/api.h"
#include "cli/session.h"

namespace swell::cli {

enum class NodeWellness { kHealthy, kFaulty, kSuspect, kUnhealthy };

struct NodeHealthState {
  NodeWellness wellness = NodeWellness::kHealthy;  // by its checks and its pods alone
  std::string word;      // "Unhealthy", "Suspect", "Healthy,SchedulingDisabled"
  std::string sentence;  // "unhealthy and cordoned: it gets no new pods"
  std::string faults;    // "GPU 1: too hot"; empty: none is known
  Colour colour = Colour::kNone;
  bool sound = true;  // there is nothing to tell of it
};
NodeHealthState HealthOfNode(const json::Value& node);

// "node-2, on which worker-0 runs, is unhealthy: GPU 1: too hot": for pods that run on a node with
// a fault or one that is not ready, or hold a GPU with a fault. A few lines at most.
std::vector<std::string> UnhealthyPlaces(const std::vector<json::SharedValue>& pods,
                                         const std::vector<json::SharedValue>& nodes);
// The same, with the nodes that the server has; empty where the user may not read them.
Result<std::vector<std::string>> FindUnhealthyPlaces(Api& api,
                                                     const std::vector<json::SharedValue>& pods);

}  // namespace swell::cli
