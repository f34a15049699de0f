// PodStatus: the record of a pod as Kubernetes' status.
// - Threads: pure functions.
#pragma once

#include <string_view>

#include "base/clock.h"
#include "json/value.h"
#include "kube/node/pod/pod_record.h"

namespace swell::node {

// As the kubelet's getPhase.
std::string_view PodPhase(const PodRecord& record);

// The whole status. `conditions` are the ones last reported: those that stay as they are keep
// their transition times.
json::Object PodStatus(const PodRecord& record,
                       const json::Array& conditions,
                       std::string_view host_ip,
                       WallTime now);

// The node reports this condition; others are left alone.
bool IsKubeletCondition(std::string_view type);

}  // namespace swell::node
