// Requests to a container engine: a pod's sandbox and its containers in the terms of the Container
// Runtime Interface. What the interface cannot express is refused here.
// - Threads: the I/O thread; functions over values and a pod's files. Short and blocking.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "kube/cri/answers.h"
#include "kube/cri/wire.h"
#include "kube/images/credentials.h"
#include "kube/node/runtime/runtime.h"
#include "kube/process/pod_store.h"

namespace swell::cri {

// Labels by which crictl, log collectors and the next run of swell know what is whose. The first
// tells clusters apart that use one engine.
inline constexpr const char* kInstanceLabel = "swell.dev/instance";
inline constexpr const char* kUidLabel = "io.kubernetes.pod.uid";
inline constexpr const char* kContainerLabel = "io.kubernetes.container.name";
// An annotation of containers whose pods name the signal that stops them.
inline constexpr const char* kSignalAnnotation = "swell.dev/stop-signal";

// The request of ListPodSandbox or ListContainers for what this cluster made. `labels_field` is the
// number of the field for labels in its filter.
Message FilterByInstance(uint32_t labels_field, const std::string& instance);

// kNotAcceptable names the field that the interface cannot express.
Status CheckSandbox(const node::SandboxSpec& spec);
// Whether the pod may use the paths of the machine that it names; kNotAcceptable says why not.
Status CheckHostPaths(const process::ProcessPod& pod, const std::string& data_dir);
// A PodSandboxConfig.
Message SandboxConfig(const process::ProcessPod& pod, const std::string& instance, int attempt);

// What the engine is, and what it can do on this machine.
struct Engine {
  EngineVersion version;
  EngineStatus status;
};

struct ContainerPlan {
  const Engine& engine;
  const process::PodStore& store;
  const process::ProcessPod& pod;
  const node::ContainerSpec& spec;
  std::string instance;
  std::string target_id;  // the container whose processes it sees; empty: its own only
};
// A ContainerConfig. Mounts parts of volumes, so that their paths cannot be changed meanwhile.
// kForbidden: the container may not run as it asks.
Result<Message> ContainerConfig(const ContainerPlan& plan);
// As the kubelet words it; `image` is what the engine says of the container's.
Status CheckNonRoot(const process::ProcessPod& pod,
                    const node::ContainerSpec& spec,
                    const ImageInfo& image);
// Unmounts what ContainerConfig mounted for the pod.
void ReleaseSubPaths(const std::string& data_dir, const std::string& uid);

// A LinuxContainerResources.
Message ResourcesOf(const node::CpuAndMemory& amounts);

// A PullImageRequest.
Message PullRequest(const std::string& image, const std::optional<images::Credential>& credential);

}  // namespace swell::cri
