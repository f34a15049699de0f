// Pod: the facts of pods that several layers need, each read in one place.
// - Threads: pure functions.
// - Ownership: texts and documents are the pod's own, valid while it lives.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "json/value.h"

namespace swell::api {

// The condition of pods, and of groups of pods, that the cluster takes from their nodes.
inline constexpr std::string_view kDisruptionTarget = "DisruptionTarget";

// status.phase; Pending for a pod without a status.
std::string_view Phase(const json::Value& pod);
// Succeeded or Failed.
bool HasEnded(const json::Value& pod);
// spec.nodeName; empty for a pod that is not bound.
std::string_view NodeName(const json::Value& pod);
bool IsBound(const json::Value& pod);
// spec.schedulerName.
std::string_view SchedulerName(const json::Value& pod);
// KAI's and Run:ai's annotations that ask for a part of a GPU, each with Swell's of that meaning.
std::span<const std::pair<std::string_view, std::string_view>> SharesOfKai();
// status.nominatedNodeName: the node that the scheduler has promised to the pod; empty without one.
std::string_view NominatedNode(const json::Value& pod);
bool IsReady(const json::Value& pod);
// Neither ended nor being deleted.
bool IsActive(const json::Value& pod);
// Whether the pod has a sidecar (see IsSidecar in amounts.h) of that name.
bool HasSidecar(const json::Value& pod, std::string_view container_name);
// The restarts of all its containers, without its init containers.
int64_t RestartCount(const json::Value& pod);
// spec.priorityClassName, also of a pod template, a pod group and a job.
std::string_view PriorityClassName(const json::Value& pod);
// status.podIP and status.hostIP; empty until there is one.
std::string_view PodIp(const json::Value& pod);
std::string_view HostIp(const json::Value& pod);
// When its node began to care for it.
std::optional<WallTime> StartTime(const json::Value& pod);

// Also of a pod template.
const json::Array& Containers(const json::Value& pod);
const json::Array& InitContainers(const json::Value& pod);
std::string_view ContainerName(const json::Value& container);
// Whether the lists have containers of the same names in the same order.
bool SameContainers(const json::Array& a, const json::Array& b);
bool HasVolumes(const json::Value& pod);

// An entry of a container's ports.
struct ContainerPort {
  std::string_view name;
  std::string_view protocol;  // TCP where it says nothing
  std::string_view host_ip;
  int64_t container_port = 0;
  int64_t host_port = 0;  // 0: none
};
std::vector<ContainerPort> Ports(const json::Value& container);
// The port of that name in any of the containers.
std::optional<int64_t> NamedPort(const json::Value& pod, std::string_view name);

// What the node reported of a container.
struct ContainerStatus {
  enum class State { kUnknown, kWaiting, kRunning, kTerminated };

  std::string_view name;
  State state = State::kUnknown;
  bool ready = false;
  bool started = false;
  int64_t restart_count = 0;
  // Why it waits or how it ended.
  std::string_view reason, message;
  int64_t exit_code = 0;                // when terminated
  std::string_view started_at;          // when it began; as the node wrote it
  std::optional<WallTime> finished_at;  // when terminated

  bool Waits() const { return state == State::kWaiting; }
  bool Runs() const { return state == State::kRunning; }
  bool Ended() const { return state == State::kTerminated; }
};
std::vector<ContainerStatus> ContainerStatuses(const json::Value& pod);
std::vector<ContainerStatus> InitContainerStatuses(const json::Value& pod);

}  // namespace swell::api
