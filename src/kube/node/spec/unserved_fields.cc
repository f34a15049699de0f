#include "kube/node/spec/unserved_fields.h"

#include <algorithm>
#include <string_view>

#include "base/strings.h"

namespace swell::node {
namespace {

constexpr std::string_view kReason = "UnsupportedField";
constexpr std::string_view kLists[] = {"initContainers", "containers", "ephemeralContainers"};
// What these do for a pod elsewhere, this node does for every pod.
constexpr std::string_view kHandlers[] = {"", "runc", "crun", "nvidia", "swell"};

struct Field {
  std::string_view name;
  std::string_view why;
};
constexpr Field kOfContainers[] = {
    {"volumeDevices", "there are no block devices here; mount a volume instead"}};

bool IsThere(const json::Value* value) {
  if (value == nullptr || value->is_null()) return false;
  if (value->is_array()) return !value->get_array().empty();
  return !value->is_object() || !value->get_object().empty();
}

Refusal Unserved(std::string_view at, std::string_view why) {
  return {std::string(kReason), StrCat("spec.", at, ": ", why)};
}

std::string InList(std::string_view list, const json::Value& container, std::string_view field) {
  return StrCat(list, "[", json::GetString(container, {"name"}), "].", field);
}

std::optional<Refusal> FindInContainer(std::string_view list, const json::Value& container) {
  for (const Field& field : kOfContainers) {
    if (IsThere(json::Find(container, {field.name}))) {
      return Unserved(InList(list, container, field.name), field.why);
    }
  }
  for (const json::Value& variable : json::GetArray(container, {"env"})) {
    if (IsThere(json::Find(variable, {"valueFrom", "fileKeyRef"}))) {
      return Unserved(
          InList(list, container,
                 StrCat("env[", json::GetString(variable, {"name"}), "].valueFrom.fileKeyRef")),
          "variables are not read from files here; let the container's command read the file");
    }
  }
  for (const json::Value& rule : json::GetArray(container, {"restartPolicyRules"})) {
    if (json::GetString(rule, {"action"}) == "RestartAllContainers") {
      return Unserved(InList(list, container, "restartPolicyRules"),
                      "RestartAllContainers: a container restarts alone here; use Restart");
    }
  }
  for (const json::Value& mount : json::GetArray(container, {"volumeMounts"})) {
    if (json::GetString(mount, {"mountPropagation"}) == "Bidirectional") {
      return Unserved(
          InList(list, container,
                 StrCat("volumeMounts[", json::GetString(mount, {"name"}), "].mountPropagation")),
          "Bidirectional: what a container mounts never reaches the node");
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> FindUnserved(const json::Value& pod) {
  const std::string_view os = json::GetString(pod, {"spec", "os", "name"});
  if (!os.empty() && os != "linux") {
    return Refusal{"PodOSNotSupported",
                   StrCat("spec.os.name: ", Quote(os), ": this node runs Linux")};
  }
  for (std::string_view list : kLists) {
    for (const json::Value& container : json::GetArray(pod, {"spec", list})) {
      if (auto found = FindInContainer(list, container)) return found;
    }
  }
  return std::nullopt;
}

std::vector<std::string> FindIgnored(const json::Value& pod) {
  std::vector<std::string> out;
  const bool own_network = !json::GetBool(pod, {"spec", "hostNetwork"});
  for (std::string_view list : kLists) {
    for (const json::Value& container : json::GetArray(pod, {"spec", list})) {
      auto ignored = [&](const std::string& field, std::string_view why) {
        out.push_back(StrCat("spec.", InList(list, container, field), ": ", why));
      };
      for (const json::Value& mount : json::GetArray(container, {"volumeMounts"})) {
        if (json::GetString(mount, {"mountPropagation"}) != "HostToContainer") continue;
        ignored(StrCat("volumeMounts[", json::GetString(mount, {"name"}), "].mountPropagation"),
                "HostToContainer: mounts of the node that appear later are not seen");
      }
      for (const json::Value& port : json::GetArray(container, {"ports"})) {
        const int64_t number = json::GetInt(port, {"hostPort"});
        if (number == 0 || json::GetString(port, {"protocol"}, "TCP") == "TCP") continue;
        if (own_network) ignored(StrCat("ports.hostPort: ", number), "the node serves TCP alone");
      }
    }
  }
  return out;
}

std::optional<std::string> FindUnservedHandler(const json::Value& runtime_class) {
  const std::string_view handler = json::GetString(runtime_class, {"handler"});
  if (std::find(std::begin(kHandlers), std::end(kHandlers), handler) != std::end(kHandlers)) {
    return std::nullopt;
  }
  return StrCat("no runtime for ", Quote(handler),
                " is configured; handlers of this node are runc, crun, nvidia and swell");
}

}  // namespace swell::node
