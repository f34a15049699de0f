// DeviceSlice: publishes the GPUs of one node as a ResourceSlice, so that claims can ask for them.
//
// The slice belongs to the Node and goes with it. GPUs that are unhealthy are left out of it until
// they are well again. A server that does not know resource.k8s.io/v1 is left alone.
//
// - Threads: core executor only.
// - Ownership: executor, client and configuration outlive it.
#pragma once

#include <set>
#include <string>

#include "base/timer.h"
#include "json/value.h"
#include "kube/client/client.h"
#include "kube/node/spec/node_config.h"
#include "kube/node/spec/pod_spec.h"

namespace swell::node {

class DeviceSlice {
 public:
  DeviceSlice(Executor& executor, client::Client& client, const NodeConfig& config);

  // The GPUs as they are now, of the Node with this uid. Tried again until it is written.
  void Publish(const std::string& node_uid, const Amounts& allocatable, const std::set<int>& bad);

 private:
  void Write();
  void Replace();
  void OnWritten(const Status& status);

  client::Client& client_;
  const NodeConfig& config_;
  json::Value slice_;  // as it should be; null: nothing to publish
  int failures_ = 0;
  Timer timer_;
};

// The name of a GPU among the node's devices, and its index; -1 for any other name.
std::string GpuDeviceName(int index);
int GpuOfDeviceName(std::string_view name);

}  // namespace swell::node
