// NodeConfig: what a node says about itself.
// - Threads: a plain value.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kube/api/meta/kubernetes_version.h"

namespace swell::node {

struct NodeTaint {
  std::string key;
  std::string value;
  std::string effect;  // NoSchedule, PreferNoSchedule, NoExecute
};

struct NodeConfig {
  std::string name;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::vector<NodeTaint> taints;
  // As Kubernetes writes amounts: {"cpu": "4", "memory": "15Gi", "pods": "110",
  // "nvidia.com/gpu": "4"}. pods defaults to 110.
  std::map<std::string, std::string> capacity;
  // Taken off capacity to make allocatable: {"cpu": "100m"}.
  std::map<std::string, std::string> system_reserved;
  std::string internal_ip = "127.0.0.1";
  // Adds the labels node-role.kubernetes.io/master and …/control-plane.
  bool control_plane = false;
  std::string kubelet_version = api::kKubernetesVersion;
  // What Kubernetes tells of a machine; virtual nodes have their host's.
  std::string os_image;
  std::string kernel_version;
  std::string machine_id;
  std::string system_uuid;
  std::string boot_id;
  int kubelet_port = 0;  // 0: not announced
  // What CUDA_VISIBLE_DEVICES of the node's i-th GPU says; empty: "0", "1", … by capacity.
  std::vector<std::string> gpu_device_ids;
  Duration lease_interval = std::chrono::seconds(10);
  Duration status_interval = std::chrono::minutes(5);
  // Variables that every container gets first (KUBERNETES_SERVICE_HOST, …).
  std::vector<std::pair<std::string, std::string>> base_env;
  bool record_events = true;
  bool publish_gpus = true;  // as a ResourceSlice
};

}  // namespace swell::node
