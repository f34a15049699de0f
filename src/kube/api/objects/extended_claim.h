// ExtendedClaim: the ResourceClaim of a pod that requests devices as extended resources, for which
// classes of devices stand (extendedResourceName of a DeviceClass, KEP 5004). Requests and mappings
// are those that kube-scheduler makes.
// - Threads: pure functions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "json/value.h"

namespace swell::api {

struct ExtendedClaim {
  json::Value claim;     // to be created
  json::Array mappings;  // which request serves which container: for the pod's status
};

// Whether pods can request the class's devices by this name.
bool ServesResource(const json::Value& device_class, std::string_view resource);

// `class_of` names the class that stands for a resource; empty: the resource is not one of devices.
// nullopt: the pod requests none.
std::optional<ExtendedClaim> MakeExtendedClaim(
    const json::Value& pod, const std::function<std::string(const std::string&)>& class_of);

}  // namespace swell::api
