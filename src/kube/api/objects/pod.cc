#include "kube/api/objects/pod.h"

#include <algorithm>

#include "kube/api/meta/meta.h"
#include "kube/api/objects/amounts.h"

namespace swell::api {

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

std::string_view SchedulerName(const json::Value& pod) {
  return json::GetString(pod, {"spec", "schedulerName"});
}

std::string_view NominatedNode(const json::Value& pod) {
  return json::GetString(pod, {"status", "nominatedNodeName"});
}

bool IsReady(const json::Value& pod) { return ConditionIsTrue(pod, "Ready"); }

bool IsActive(const json::Value& pod) { return !HasEnded(pod) && !IsDeleting(pod); }

bool HasSidecar(const json::Value& pod, std::string_view container_name) {
  const json::Array& inits = json::GetArray(pod, {"spec", "initContainers"});
  return std::any_of(inits.begin(), inits.end(), [&](const json::Value& container) {
    return json::GetString(container, {"name"}) == container_name && IsSidecar(container);
  });
}

int64_t RestartCount(const json::Value& pod) {
  int64_t total = 0;
  for (const json::Value& container : json::GetArray(pod, {"status", "containerStatuses"})) {
    total += json::GetInt(container, {"restartCount"});
  }
  return total;
}

}  // namespace swell::api
