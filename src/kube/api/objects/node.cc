#include "kube/api/objects/node.h"

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::api {

bool IsUnschedulable(const json::Value& node) {
  return json::GetBool(node, {"spec", "unschedulable"});
}

std::vector<Taint> TaintsOf(const json::Value& node) {
  std::vector<Taint> taints;
  for (const json::Value& taint : json::GetArray(node, {"spec", "taints"})) {
    taints.push_back({.key = json::GetString(taint, {"key"}),
                      .value = json::GetString(taint, {"value"}),
                      .effect = json::GetString(taint, {"effect"}),
                      .time_added = json::GetString(taint, {"timeAdded"})});
  }
  return taints;
}

bool Tolerates(const json::Value& toleration, const Taint& taint) {
  const std::string_view effect = json::GetString(toleration, {"effect"});
  if (!effect.empty() && effect != taint.effect) return false;
  const std::string_view key = json::GetString(toleration, {"key"});
  const bool exists = json::GetString(toleration, {"operator"}) == "Exists";
  if (key.empty()) return exists;
  if (key != taint.key) return false;
  return exists || json::GetString(toleration, {"value"}) == taint.value;
}

std::vector<NodeAddress> Addresses(const json::Value& node) {
  std::vector<NodeAddress> addresses;
  for (const json::Value& one : json::GetArray(node, {"status", "addresses"})) {
    addresses.push_back(
        {.type = json::GetString(one, {"type"}), .address = json::GetString(one, {"address"})});
  }
  return addresses;
}

std::string_view InternalIp(const json::Value& node) {
  for (const NodeAddress& one : Addresses(node)) {
    if (one.type == "InternalIP") return one.address;
  }
  return {};
}

int64_t GpuMemoryMib(const json::Value& node) {
  return ParseInt(Label(node, "nvidia.com/gpu.memory")).value_or(0);
}

}  // namespace swell::api
