// What a container engine is asked for: a pod's sandbox and its containers in the terms of the
// Container Runtime Interface. What the interface cannot say is refused here.
// - Threads: the I/O thread; functions over values and a pod's files. Short and blocking.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "kube/cri/answers.h"
#include "kube/cri/wire.h"
#include "kube/images/credentials.h"
#include "kube/node/runtime.h"
#include "kube/process/pod_store.h"

namespace swell::cri {

// Labels by which crictl, log collectors and the next run of swell know what is whose. The first
// tells clusters apart that use one engine.
inline constexpr const char* kInstanceLabel = "swell.dev/instance";
inline constexpr const char* kUidLabel = "io.kubernetes.pod.uid";
inline constexpr const char* kContainerLabel = "io.kubernetes.container.name";
// An annotation of containers whose pods name the signal that stops them.
inline constexpr const char* kSignalAnnotation = "swell.dev/stop-signal";

// A filter of ListPodSandbox and ListContainers: what has this label. `labels` is the filter's
// field.
Message FilterByInstance(uint32_t labels, const std::string& instance);

// kNotAcceptable names the field that the interface has no word for.
Status CheckSandbox(const node::SandboxSpec& spec);
// Whether the pod may use the paths of the machine that it names; kNotAcceptable says why not.
Status CheckHostPaths(const edge::ProcessPod& pod, const std::string& data_dir);
// A PodSandboxConfig.
Message SandboxConfig(const edge::ProcessPod& pod, const std::string& instance, int attempt);

// How the engine and this machine are.
struct Engine {
  EngineVersion version;
  EngineStatus status;
};

struct ContainerPlan {
  const Engine& engine;
  const edge::PodStore& store;
  const edge::ProcessPod& pod;
  const node::ContainerSpec& spec;
  std::string instance;
  std::string target_id;  // the container whose processes it sees; empty: its own only
};
// A ContainerConfig. Mounts parts of volumes, so that their paths cannot be changed meanwhile.
// kForbidden: the container may not run as it asks.
Result<Message> ContainerConfig(const ContainerPlan& plan);
// As the kubelet words it; `image` is what the engine says of the container's.
Status CheckNonRoot(const edge::ProcessPod& pod,
                    const node::ContainerSpec& spec,
                    const ImageInfo& image);
// Unmounts what ContainerConfig mounted for the pod.
void ReleaseSubPaths(const std::string& data_dir, const std::string& uid);

// A LinuxContainerResources.
Message ResourcesOf(const node::CpuAndMemory& amounts);

// A PullImageRequest.
Message PullRequest(const std::string& image, const std::optional<images::Credential>& credential);

}  // namespace swell::cri
