#include "kube/api/objects/runai_workload.h"

#include "base/strings.h"

namespace swell::api {

const json::Value* WorkloadValue(const json::Value& body, std::string_view field) {
  return json::Find(body, {field, "value"});
}

std::string WorkloadText(const json::Value& body, std::string_view field) {
  const json::Value* value = WorkloadValue(body, field);
  if (value == nullptr) return "";
  return value->is_string() ? std::string(json::View(value->get_string())) : json::Print(*value);
}

bool WorkloadSwitch(const json::Value& body, std::string_view field) {
  return json::GetBool(body, {field, "value"});
}

const json::Object& WorkloadItems(const json::Value& body, std::string_view field) {
  return json::GetObject(body, {field, "items"});
}

std::vector<WorkloadPort> WorkloadPorts(const json::Value& body) {
  std::vector<WorkloadPort> ports;
  for (const auto& item : WorkloadItems(body, "ports")) {
    const json::Value* value = json::Find(item.value(), {"value"});
    if (value == nullptr) continue;
    WorkloadPort port;
    port.item =
        StrCat("ports.items.", std::string_view(item.key().data(), item.key().size()), ".value");
    port.container = json::GetInt(*value, {"container"});
    port.outer_field = json::Find(*value, {"external"}) != nullptr ? "external" : "container";
    port.outer = json::GetInt(*value, {port.outer_field});
    port.type = json::GetString(*value, {"serviceType"}, "ClusterIP");
    ports.push_back(std::move(port));
  }
  return ports;
}

}  // namespace swell::api
