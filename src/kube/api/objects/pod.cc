#include "kube/api/objects/pod.h"

#include <algorithm>

#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/amounts.h"
#include "kube/api/objects/container_list.h"

namespace swell::api {
namespace {

ContainerStatus ReadStatus(const json::Value& document) {
  ContainerStatus status{.name = json::GetString(document, {"name"}),
                         .ready = json::GetBool(document, {"ready"}),
                         .started = json::GetBool(document, {"started"}),
                         .restart_count = json::GetInt(document, {"restartCount"})};
  const json::Value* state = nullptr;
  if ((state = json::Find(document, {"state", "running"}))) {
    status.state = ContainerStatus::State::kRunning;
    status.started_at = json::GetString(*state, {"startedAt"});
  } else if ((state = json::Find(document, {"state", "waiting"}))) {
    status.state = ContainerStatus::State::kWaiting;
  } else if ((state = json::Find(document, {"state", "terminated"}))) {
    status.state = ContainerStatus::State::kTerminated;
    status.exit_code = json::GetInt(*state, {"exitCode"});
    status.started_at = json::GetString(*state, {"startedAt"});
    status.finished_at = ParseTime(json::GetString(*state, {"finishedAt"}));
  }
  if (state != nullptr) {
    status.reason = json::GetString(*state, {"reason"});
    status.message = json::GetString(*state, {"message"});
  }
  return status;
}

std::vector<ContainerStatus> ReadStatuses(const json::Value& pod, std::string_view field) {
  std::vector<ContainerStatus> statuses;
  for (const json::Value& one : json::GetArray(pod, {"status", field})) {
    statuses.push_back(ReadStatus(one));
  }
  return statuses;
}

}  // namespace

std::string_view Phase(const json::Value& pod) {
  return json::GetString(pod, {"status", "phase"}, "Pending");
}

bool HasEnded(const json::Value& pod) {
  const std::string_view phase = Phase(pod);
  return phase == "Succeeded" || phase == "Failed";
}

std::string_view NodeName(const json::Value& pod) {
  return json::GetString(pod, {"spec", "nodeName"});
}

bool IsBound(const json::Value& pod) { return !NodeName(pod).empty(); }

std::span<const std::pair<std::string_view, std::string_view>> SharesOfKai() {
  static constexpr std::pair<std::string_view, std::string_view> kShares[] = {
      {"gpu-fraction", keys::kGpuFraction},
      {"gpu-memory", keys::kGpuMemory},
      {"gpu-fraction-num-devices", keys::kGpuFractionDevices}};
  return kShares;
}

std::string_view SchedulerName(const json::Value& pod) {
  return json::GetString(pod, {"spec", "schedulerName"});
}

std::string_view NominatedNode(const json::Value& pod) {
  return json::GetString(pod, {"status", "nominatedNodeName"});
}

bool IsReady(const json::Value& pod) { return ConditionIsTrue(pod, "Ready"); }

bool IsActive(const json::Value& pod) { return !HasEnded(pod) && !IsDeleting(pod); }

bool HasSidecar(const json::Value& pod, std::string_view container_name) {
  const json::Value* found = ContainerIn(InitContainers(pod), container_name);
  return found != nullptr && IsSidecar(*found);
}

int64_t RestartCount(const json::Value& pod) {
  int64_t total = 0;
  for (const json::Value& container : json::GetArray(pod, {"status", "containerStatuses"})) {
    total += json::GetInt(container, {"restartCount"});
  }
  return total;
}

std::string_view PriorityClassName(const json::Value& pod) {
  return json::GetString(pod, {"spec", "priorityClassName"});
}

std::string_view PodIp(const json::Value& pod) { return json::GetString(pod, {"status", "podIP"}); }

std::string_view HostIp(const json::Value& pod) {
  return json::GetString(pod, {"status", "hostIP"});
}

std::optional<WallTime> StartTime(const json::Value& pod) {
  return ParseTime(json::GetString(pod, {"status", "startTime"}));
}

const json::Array& Containers(const json::Value& pod) {
  return json::GetArray(pod, {"spec", "containers"});
}

const json::Array& InitContainers(const json::Value& pod) {
  return json::GetArray(pod, {"spec", "initContainers"});
}

std::string_view ContainerName(const json::Value& container) {
  return json::GetString(container, {"name"});
}

bool SameContainers(const json::Array& a, const json::Array& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const json::Value& one, const json::Value& other) {
                      return ContainerName(one) == ContainerName(other);
                    });
}

bool HasVolumes(const json::Value& pod) {
  return !json::GetArray(pod, {"spec", "volumes"}).empty();
}

std::vector<ContainerPort> Ports(const json::Value& container) {
  std::vector<ContainerPort> ports;
  for (const json::Value& port : json::GetArray(container, {"ports"})) {
    ports.push_back({.name = json::GetString(port, {"name"}),
                     .protocol = json::GetString(port, {"protocol"}, "TCP"),
                     .host_ip = json::GetString(port, {"hostIP"}),
                     .container_port = json::GetInt(port, {"containerPort"}),
                     .host_port = json::GetInt(port, {"hostPort"})});
  }
  return ports;
}

std::optional<int64_t> NamedPort(const json::Value& pod, std::string_view name) {
  for (const json::Value& container : Containers(pod)) {
    for (const ContainerPort& port : Ports(container)) {
      if (port.name == name) return port.container_port;
    }
  }
  return std::nullopt;
}

std::vector<ContainerStatus> ContainerStatuses(const json::Value& pod) {
  return ReadStatuses(pod, "containerStatuses");
}

std::vector<ContainerStatus> InitContainerStatuses(const json::Value& pod) {
  return ReadStatuses(pod, "initContainerStatuses");
}

}  // namespace swell::api
