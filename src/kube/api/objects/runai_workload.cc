#include "kube/api/objects/runai_workload.h"

#include <algorithm>
#include <utility>

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
  std::string_view usual = json::GetString(body, {"serviceType", "value"});
  if (usual.empty()) usual = "ClusterIP";
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
    port.type = json::GetString(*value, {"serviceType"}, usual);
    ports.push_back(std::move(port));
  }
  return ports;
}

int64_t WorkloadWorkers(const json::Value& body) {
  return json::GetInt(body, {"workers", "value"}, 1);
}

int64_t WorkloadMembers(const json::Value& body) {
  const std::string_view framework = json::GetString(body, {"jobType"});
  if (framework.empty()) return json::GetInt(body, {"minScale", "value"}, 1);
  return WorkloadWorkers(body) + (framework == "JAXJob" ? 0 : 1);
}

json::Value WithMasterSpec(const json::Value& body, const json::Value& master) {
  constexpr std::string_view kGpuFields[] = {"gpu", "gpuDevices", "gpuMemory"};
  const auto says = [&master](std::string_view field) {
    return json::Find(master, {field}) != nullptr;
  };
  json::Value merged = body;
  if (std::ranges::any_of(kGpuFields, says)) {
    for (std::string_view field : kGpuFields) json::Remove(merged, {field});
  }
  if (master.is_object()) {
    for (const auto& [key, value] : master.get_object()) {
      json::Set(merged, {std::string_view(key.data(), key.size())}, value);
    }
  }
  return merged;
}

std::string WithWorkloadVariables(std::string word) {
  for (std::string_view name :
       {"RUNAI_PROJECT", "RUNAI_JOB_NAME", "RUNAI_JOB_UUID", "RUNAI_NUM_OF_GPUS"}) {
    const std::string from = StrCat("${", name, "}"), to = StrCat("$(", name, ")");
    for (size_t at = word.find(from); at != std::string::npos; at = word.find(from, at)) {
      word.replace(at, from.size(), to);
    }
  }
  return word;
}

std::optional<json::Array> WorkloadGroups(const json::Value& body) {
  constexpr int64_t kIdMax = 2147483647;
  json::Array groups;
  const std::string text = WorkloadText(body, "supplementalGroups");
  if (text.empty()) return groups;
  for (std::string_view word : Split(text, ';')) {
    const auto group = ParseInt(Trim(word));
    if (!group || *group < 0 || *group > kIdMax) return std::nullopt;
    groups.emplace_back(*group);
  }
  return groups;
}

void SetWorkloadRights(const json::Value& body, json::Value& pod, json::Value& container) {
  struct Row {
    std::string_view field, to;
    bool of_user = false;
  };
  static constexpr Row kRows[] = {{"runAsUid", "runAsUser", true},
                                  {"runAsGid", "runAsGroup", true},
                                  {"allowPrivilegeEscalation", "allowPrivilegeEscalation"}};
  for (const auto& item : WorkloadItems(body, "annotations")) {
    json::Set(pod, {"metadata", "annotations", {item.key().data(), item.key().size()}},
              json::GetString(item.value(), {"value"}));
  }
  if (WorkloadSwitch(body, "hostIpc")) json::Set(pod, {"spec", "hostIPC"}, true);
  if (WorkloadSwitch(body, "hostNetwork")) json::Set(pod, {"spec", "hostNetwork"}, true);
  const bool as_user = json::GetBool(body, {"runAsUser", "value"}, true);
  for (const Row& row : kRows) {
    const json::Value* value = WorkloadValue(body, row.field);
    if (value == nullptr || (row.of_user && !as_user)) continue;
    json::Set(container, {"securityContext", row.to}, *value);
  }
  std::optional<json::Array> groups = WorkloadGroups(body);
  if (!groups || groups->empty()) return;
  json::Set(pod, {"spec", "securityContext", "supplementalGroups"}, std::move(*groups));
}

}  // namespace swell::api
