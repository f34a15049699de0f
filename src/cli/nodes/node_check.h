// NodeCheck: the pod that tests a node, and what its end means.
// - Threads: values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"

namespace swell::cli {

// One part of the test.
struct CheckPart {
  enum class State { kSkipped, kGood, kBad } state = State::kSkipped;
  double rate = 0;  // MiB/s; of GPUs TFLOP/s; 0: not measured
  std::string message;
};

struct NodeCheck {
  enum class Verdict { kGood, kSlow, kBad, kSkipped, kUnknown };
  static constexpr size_t kParts = 4;
  static constexpr std::string_view kPartNames[kParts] = {"compute", "memory", "disk", "gpu"};

  std::string node;
  std::string gpu;  // the device's index; empty: the pod had none
  Verdict verdict = Verdict::kUnknown;
  std::string message;
  CheckPart parts[kParts];

  json::Value ToJson() const;
};
std::string_view VerdictWord(NodeCheck::Verdict verdict);

// The pod: on that node alone, tainted or not; it can be preempted, and preempts nobody.
json::Value CheckPod(const std::string& node,
                     const std::string& pod,
                     const std::string& image,
                     bool with_gpu);
// What a pod that has ended found; nullopt while it has not ended.
std::optional<NodeCheck> CheckOf(const std::string& node, const json::Value& pod);
// Names those that are much slower than most: of three or more nodes.
void CompareChecks(std::vector<NodeCheck>& checks);

}  // namespace swell::cli
