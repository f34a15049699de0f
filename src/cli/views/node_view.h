// Nodes as people see them: what there is, what its pods have asked for. Read once per command.
//
// All commands count GPUs alike. The total is what a node has, unhealthy ones too, so no more can
// be held. Free are those that are healthy and not held: an unhealthy GPU that a pod still holds
// counts as held.
//
// - Threads: values; functions that ask the server block on its loop.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/api.h"

namespace swell::cli {

// What is asked for, or what there is.
struct Amounts {
  int64_t milli_cpu = 0;
  int64_t memory = 0;
  int64_t milli_gpus = 0;

  bool operator==(const Amounts&) const = default;
  void AddPod(const json::Value& pod);
  void Add(const Amounts& more);
};

struct NodeView {
  json::SharedValue object;
  std::string name, address;
  std::string role;  // "master", "<none>"
  bool ready = false;
  bool unschedulable = false;
  bool unhealthy = false;      // as a whole: it gets no new pods
  Amounts total;               // GPUs that it has; CPU and memory that pods may use
  int64_t unhealthy_gpus = 0;  // of the GPUs that it has
  std::string gpu_type;        // by its label; empty: unknown
  Amounts used;
  std::vector<json::SharedValue> pods;  // placed on it and not over

  int64_t gpus() const { return total.milli_gpus / 1000; }
  int64_t healthy_gpus() const { return gpus() - unhealthy_gpus; }
  // The part of its healthy GPUs that no pod holds; never negative.
  int64_t FreeMilliGpus() const;
  // "Ready", "NotReady,SchedulingDisabled", "Ready,Unhealthy".
  std::string StatusWord() const;
};

// By name, with those of the pods that are on them.
std::vector<NodeView> ViewNodes(std::vector<json::SharedValue> nodes,
                                const std::vector<json::SharedValue>& pods);
Result<std::vector<NodeView>> ReadNodes(Api& api);
// Those of these names, all for none; kNotFound names what is missing.
Result<std::vector<NodeView>> ReadNodes(Api& api, const std::vector<std::string>& names);
// Likewise, with the pods of these namespaces only, as far as the user can read them.
Result<std::vector<NodeView>> ReadNodesWithPodsOf(Api& api,
                                                  const std::vector<std::string>& names,
                                                  const std::set<std::string>& namespaces);

std::string CpuText(int64_t milli);     // "4", "500m"
std::string MemoryText(int64_t bytes);  // "512Mi", "64Gi"

}  // namespace swell::cli
