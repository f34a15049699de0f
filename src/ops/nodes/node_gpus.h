// NodeGpus: what the virtual GPUs of a node show, as lines for the nvidia-smi script.
// - Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace swell::ops {

struct NodeGpus {
  std::string devices;   // for $SWELL_GPU_DEVICES
  std::string programs;  // for $SWELL_GPU_PROGRAMS: containers stand for their programs
};

// `usage` is a PodMetricsList; an empty value: nothing is known. kInvalid: the node has no virtual
// GPUs.
Result<NodeGpus> DescribeNodeGpus(const json::Value& node,
                                  const std::vector<json::SharedValue>& pods,
                                  const json::Value& usage);

}  // namespace swell::ops
