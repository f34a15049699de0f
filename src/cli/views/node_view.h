// Nodes as people see them: what there is, what its pods have asked for. Read once per command.
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

  void AddPod(const json::Value& pod);
  void Add(const Amounts& more);
};

struct NodeView {
  json::SharedValue object;
  std::string name, address;
  std::string role;  // "master", "<none>"
  bool ready = false;
  bool unschedulable = false;
  Amounts total;             // that pods may use
  int64_t gpu_capacity = 0;  // GPUs it has, broken ones too
  std::string gpu_type;      // by its label; empty: unknown
  Amounts used;
  std::vector<json::SharedValue> pods;  // placed on it and not over

  int64_t gpus() const { return total.milli_gpus / 1000; }
  // "Ready", "NotReady,SchedulingDisabled".
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

// How well a node is, in a word, and what follows in some more.
struct NodeWellness {
  enum class Word { kHealthy, kFaulty, kSuspect, kUnhealthy };
  Word word = Word::kHealthy;
  std::string_view text;  // "suspect: pods failed there; it is used last"
};
NodeWellness WellnessOf(const json::Value& node);

std::string CpuText(int64_t milli);     // "4", "500m"
std::string MemoryText(int64_t bytes);  // "512Mi", "64Gi"

}  // namespace swell::cli
