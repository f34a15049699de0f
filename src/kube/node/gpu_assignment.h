// GpuAssignment: which GPUs of a node a pod gets: those that its scheduler and its claims name, or
// free ones where neither says anything.
// - Threads: core executor only.
// - Ownership: lives for one answer; the node's facts and the pod outlive it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "kube/node/pod/pod_host.h"
#include "kube/node/pod/pod_worker.h"

namespace swell::node {

class GpuAssignment {
 public:
  struct Node {
    int64_t gpus = 0;     // that pods are given whole
    int64_t devices = 0;  // that an annotation or a claim may name
    std::set<int> bad;
    const std::map<std::string, std::shared_ptr<PodWorker>>& workers;  // by uid
  };

  GpuAssignment(const Node& node, const PodWorker& pod) : node_(node), pod_(pod) {}

  // Asked once. `wanted`: how many whole GPUs the pod requests.
  PodHost::AdmitResult Pick(int64_t wanted);

 private:
  using Verdict = PodHost::AdmitResult;

  const PodWorker* FindConflict(int device, bool whole) const;
  bool Give(int device, bool whole, const std::string& who);
  void PickFree(int64_t wanted);

  const Node node_;
  const PodWorker& pod_;
  Verdict verdict_;
};

}  // namespace swell::node
