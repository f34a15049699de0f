// PodHost: what a pod's worker needs of its node. Implemented by NodeAgent.
// - Threads: core executor only.
// - Ownership: the host outlives the workers' calls: it detaches them before it is destroyed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "json/value.h"
#include "kube/client/client.h"
#include "kube/node/runtime/runtime.h"
#include "kube/node/spec/node_config.h"
#include "kube/node/spec/pod_spec.h"

namespace swell::node {

class PodWorker;
class ServiceNames;

class PodHost {
 public:
  struct AdmitResult {
    enum class Kind { kAdmitted, kWait, kRejected } kind = Kind::kAdmitted;
    std::string reason;  // OutOfcpu, …
    std::string message;
    std::vector<int> gpus;  // indices of the node's devices
  };

  virtual ~PodHost() = default;
  virtual Executor& executor() = 0;
  virtual Clock& clock() = 0;
  virtual client::Client& client() = 0;
  virtual Runtime& runtime() = 0;
  virtual ServiceNames* names() = 0;  // may be null
  virtual const NodeConfig& config() const = 0;
  virtual const Amounts& allocatable() const = 0;
  // Whether the node has room; kWait while only terminating pods are in the way.
  virtual AdmitResult Admit(const PodWorker& pod) = 0;
  virtual std::string GpuDeviceId(int index) const = 0;
  virtual int64_t GpuMemoryMib() const = 0;  // of each device; 0: not known
  virtual void Event(const json::Value& pod,
                     std::string_view type,
                     std::string_view reason,
                     std::string_view message) = 0;
  // Whether the node can give a pod that is here `wanted` CPU and memory in place of what it has.
  struct Room {
    enum class Kind { kEnough, kLater, kNever } kind = Kind::kEnough;
    std::string message;  // why not
  };
  virtual Room RoomFor(const PodWorker& pod, const Amounts& wanted) const = 0;
  // Whether another pod of its namespace mounts the claim here.
  virtual bool IsMountedBeside(const PodWorker& pod, const std::string& claim) const = 0;
  // The pod released its resources: admission is retried for the pods that wait.
  virtual void OnResourcesFreed() = 0;
  // The pod is removed; the host drops its worker.
  virtual void OnWorkerDone(const std::string& uid) = 0;
};

}  // namespace swell::node
