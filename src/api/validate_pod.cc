// A pod's spec: containers, names, ports, environment, security, scheduling.
#include <set>

#include "api/meta.h"
#include "api/quantity.h"
#include "api/validate_rules.h"
#include "base/strings.h"

namespace swell::api {
namespace {

using json::Value;

// An IANA service name: what named ports must be.
std::string CheckPortName(std::string_view name) {
  if (name.size() > 15) return "must be no more than 15 characters";
  bool letter = false;
  bool fine = !name.empty() && name.front() != '-' && name.back() != '-';
  for (size_t i = 0; i < name.size(); ++i) {
    char c = name[i];
    letter = letter || (c >= 'a' && c <= 'z');
    fine = fine && ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-');
    if (c == '-' && i > 0 && name[i - 1] == '-') return "must not contain consecutive hyphens";
  }
  if (!fine) return "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)";
  return letter ? "" : "must contain at least one letter (a-z)";
}

void CheckContainerPorts(const Value& container, const std::string& path, FieldErrors& errors) {
  const json::Array& ports = json::GetArray(container, {"ports"});
  std::set<std::string> names;
  for (size_t i = 0; i < ports.size(); ++i) {
    std::string at = PathIndex(PathField(path, "ports"), i);
    std::string_view name = TextOf(ports[i], "name");
    if (!name.empty()) {
      if (std::string why = CheckPortName(name); !why.empty()) {
        errors.push_back(InvalidText(PathField(at, "name"), name, why));
      } else if (!names.emplace(name).second) {
        errors.push_back(DuplicateError(PathField(at, "name"), Value(name)));
      }
    }
    const Value* number = MemberOf(ports[i], "containerPort");
    int64_t port = json::GetInt(ports[i], {"containerPort"});
    if (number != nullptr && port == 0) {
      errors.push_back(RequiredError(PathField(at, "containerPort")));
    } else if (std::string why = CheckPort(port); number != nullptr && !why.empty()) {
      errors.push_back(InvalidError(PathField(at, "containerPort"), *number, why));
    }
    int64_t host = json::GetInt(ports[i], {"hostPort"});
    if (std::string why = CheckPort(host); host != 0 && !why.empty()) {
      errors.push_back(InvalidError(PathField(at, "hostPort"), Value(host), why));
    }
  }
}

void CheckHostPorts(const Value& spec, const std::string& path, FieldErrors& errors) {
  std::set<std::string> taken;
  const json::Array& containers = json::GetArray(spec, {"containers"});
  bool host_network = json::GetBool(spec, {"hostNetwork"});
  for (size_t c = 0; c < containers.size(); ++c) {
    const json::Array& ports = json::GetArray(containers[c], {"ports"});
    for (size_t i = 0; i < ports.size(); ++i) {
      int64_t host = json::GetInt(ports[i], {"hostPort"});
      if (host == 0) continue;
      std::string at =
          PathIndex(PathField(PathIndex(PathField(path, "containers"), c), "ports"), i);
      std::string key =
          StrCat(TextOf(ports[i], "protocol"), "/", TextOf(ports[i], "hostIP"), "/", host);
      if (!taken.insert(key).second) {
        errors.push_back(DuplicateError(PathField(at, "hostPort"), Value(key)));
      }
      int64_t port = json::GetInt(ports[i], {"containerPort"});
      if (host_network && port != host) {
        errors.push_back(InvalidError(PathField(at, "containerPort"), Value(port),
                                      "must match `hostPort` when `hostNetwork` is true"));
      }
    }
  }
}

void CheckEnvSource(const Value& source, const std::string& at, FieldErrors& errors) {
  int sources = 0;
  for (std::string_view key : {"fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef"}) {
    sources += MemberOf(source, key) ? 1 : 0;
  }
  if (sources == 0) {
    errors.push_back(InvalidText(at, "",
                                 "must specify one of: `fieldRef`, `resourceFieldRef`, "
                                 "`configMapKeyRef` or `secretKeyRef`"));
  } else if (sources > 1) {
    errors.push_back(InvalidText(at, "", "may not have more than one field specified at a time"));
  }
  const Value* ref = MemberOf(source, "fieldRef");
  if (ref == nullptr) return;
  static constexpr std::string_view kKnown[] = {"metadata.name",
                                                "metadata.namespace",
                                                "metadata.uid",
                                                "spec.nodeName",
                                                "spec.serviceAccountName",
                                                "status.hostIP",
                                                "status.hostIPs",
                                                "status.podIP",
                                                "status.podIPs"};
  std::string_view field = TextOf(*ref, "fieldPath");
  bool known =
      field.starts_with("metadata.labels['") || field.starts_with("metadata.annotations['");
  for (std::string_view k : kKnown) known = known || k == field;
  if (field.empty()) {
    errors.push_back(RequiredError(PathField(at, "fieldRef.fieldPath")));
  } else if (!known) {
    errors.push_back(NotSupportedError(PathField(at, "fieldRef.fieldPath"), field,
                                       {"metadata.name", "metadata.namespace", "metadata.uid",
                                        "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
                                        "status.hostIPs", "status.podIP", "status.podIPs"}));
  }
}

void CheckEnv(const Value& container, const std::string& path, FieldErrors& errors) {
  const json::Array& env = json::GetArray(container, {"env"});
  for (size_t i = 0; i < env.size(); ++i) {
    std::string at = PathIndex(PathField(path, "env"), i);
    std::string_view name = TextOf(env[i], "name");
    if (name.empty()) {
      errors.push_back(RequiredError(PathField(at, "name")));
    } else if (std::string why = CheckEnvVarName(name); !why.empty()) {
      errors.push_back(InvalidText(PathField(at, "name"), name, why));
    }
    const Value* source = MemberOf(env[i], "valueFrom");
    if (source == nullptr) continue;
    if (!TextOf(env[i], "value").empty()) {
      errors.push_back(InvalidText(PathField(at, "valueFrom"), "",
                                   "may not be specified when `value` is not empty"));
    } else {
      CheckEnvSource(*source, PathField(at, "valueFrom"), errors);
    }
  }
  const json::Array& from = json::GetArray(container, {"envFrom"});
  for (size_t i = 0; i < from.size(); ++i) {
    std::string at = PathIndex(PathField(path, "envFrom"), i);
    bool config = MemberOf(from[i], "configMapRef") != nullptr;
    bool secret = MemberOf(from[i], "secretRef") != nullptr;
    if (config == secret) {
      errors.push_back(InvalidText(at, "",
                                   config ? "may not have more than one field specified at a time"
                                          : "must specify one of: `configMapRef` or `secretRef`"));
    }
  }
}

void CheckMounts(const Value& container,
                 const std::set<std::string>& volumes,
                 const std::string& path,
                 FieldErrors& errors) {
  const json::Array& mounts = json::GetArray(container, {"volumeMounts"});
  std::set<std::string> points;
  for (size_t i = 0; i < mounts.size(); ++i) {
    std::string at = PathIndex(PathField(path, "volumeMounts"), i);
    std::string name(TextOf(mounts[i], "name"));
    std::string point(TextOf(mounts[i], "mountPath"));
    if (name.empty()) {
      errors.push_back(RequiredError(PathField(at, "name")));
    } else if (!volumes.contains(name)) {
      errors.push_back(NotFoundError(PathField(at, "name"), name));
    }
    if (point.empty()) {
      errors.push_back(RequiredError(PathField(at, "mountPath")));
    } else if (!points.insert(point).second) {
      errors.push_back(InvalidText(PathField(at, "mountPath"), point, "must be unique"));
    }
    std::string_view sub = TextOf(mounts[i], "subPath");
    bool up = sub == ".." || sub.starts_with("../") || sub.ends_with("/..") ||
              sub.find("/../") != std::string_view::npos;
    if (sub.starts_with('/')) {
      errors.push_back(InvalidText(PathField(at, "subPath"), sub, "must be a relative path"));
    } else if (up) {
      errors.push_back(InvalidText(PathField(at, "subPath"), sub, "must not contain '..'"));
    }
    if (!sub.empty() && !TextOf(mounts[i], "subPathExpr").empty()) {
      errors.push_back(InvalidText(PathField(at, "subPathExpr"), TextOf(mounts[i], "subPathExpr"),
                                   "subPathExpr and subPath are mutually exclusive"));
    }
  }
}

void CheckSecurityContext(const Value& holder, const std::string& path, FieldErrors& errors) {
  const Value* context = MemberOf(holder, "securityContext");
  if (context == nullptr) return;
  std::string at = PathField(path, "securityContext");
  for (std::string_view key : {"runAsUser", "runAsGroup", "fsGroup"}) {
    const Value* id = MemberOf(*context, key);
    int64_t value = json::GetInt(*context, {key});
    if (id != nullptr && (value < 0 || value > 2147483647)) {
      errors.push_back(
          InvalidError(PathField(at, key), *id, "must be between 0 and 2147483647, inclusive"));
    }
  }
  if (const Value* escalation = MemberOf(*context, "allowPrivilegeEscalation");
      escalation != nullptr && !json::GetBool(*context, {"allowPrivilegeEscalation"}) &&
      json::GetBool(*context, {"privileged"})) {
    errors.push_back(InvalidText(
        at, "", "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"));
  }
}

void CheckContainer(const Value& container,
                    const std::set<std::string>& volumes,
                    const std::string& path,
                    FieldErrors& errors) {
  std::string_view image = TextOf(container, "image");
  if (image.empty()) {
    errors.push_back(RequiredError(PathField(path, "image")));
  } else if (Trim(image) != image) {
    errors.push_back(InvalidText(PathField(path, "image"), image,
                                 "must not have leading or trailing whitespace"));
  }
  CheckContainerPorts(container, path, errors);
  CheckEnv(container, path, errors);
  CheckMounts(container, volumes, path, errors);
  if (const Value* resources = MemberOf(container, "resources")) {
    CheckResources(*resources, PathField(path, "resources"), errors);
  }
  CheckProbes(container, path, errors);
  CheckSecurityContext(container, path, errors);
}

void CheckContainers(const Value& spec,
                     std::string_view key,
                     std::set<std::string>& names,
                     const std::set<std::string>& volumes,
                     const std::string& path,
                     FieldErrors& errors) {
  const json::Array& containers = json::GetArray(spec, {key});
  for (size_t i = 0; i < containers.size(); ++i) {
    std::string at = PathIndex(PathField(path, key), i);
    std::string name(TextOf(containers[i], "name"));
    if (name.empty()) {
      errors.push_back(RequiredError(PathField(at, "name")));
    } else if (std::string why = CheckDnsLabel(name); !why.empty()) {
      errors.push_back(InvalidText(PathField(at, "name"), name, why));
    } else if (!names.insert(name).second) {
      errors.push_back(DuplicateError(PathField(at, "name"), Value(name)));
    }
    CheckContainer(containers[i], volumes, at, errors);
    std::string_view restart = TextOf(containers[i], "restartPolicy");
    if (restart.empty()) continue;
    if (key != "initContainers") {
      errors.push_back(
          ForbiddenError(PathField(at, "restartPolicy"), "may not be set for non-init containers"));
    } else if (restart != "Always") {
      errors.push_back(NotSupportedError(PathField(at, "restartPolicy"), restart, {"Always"}));
    }
  }
}

void CheckTolerations(const Value& spec, const std::string& path, FieldErrors& errors) {
  const json::Array& tolerations = json::GetArray(spec, {"tolerations"});
  for (size_t i = 0; i < tolerations.size(); ++i) {
    std::string at = PathIndex(PathField(path, "tolerations"), i);
    std::string_view key = TextOf(tolerations[i], "key");
    std::string_view op = TextOf(tolerations[i], "operator");
    std::string_view value = TextOf(tolerations[i], "value");
    std::string_view effect = TextOf(tolerations[i], "effect");
    if (!key.empty()) {
      if (std::string why = CheckQualifiedName(key); !why.empty()) {
        errors.push_back(InvalidText(PathField(at, "key"), key, why));
      }
    } else if (op != "Exists") {
      errors.push_back(InvalidText(PathField(at, "operator"), op,
                                   "operator must be Exists when `key` is empty, which means "
                                   "\"match all values and all keys\""));
    }
    if (op.empty() || op == "Equal") {
      if (std::string why = CheckLabelValue(value); !why.empty()) {
        errors.push_back(InvalidText(PathField(at, "operator"), value, why));
      }
    } else if (op == "Exists") {
      if (!value.empty()) {
        errors.push_back(InvalidText(PathField(at, "operator"), value,
                                     "value must be empty when `operator` is 'Exists'"));
      }
    } else {
      errors.push_back(NotSupportedError(PathField(at, "operator"), op, {"Equal", "Exists"}));
    }
    if (!effect.empty() && effect != "NoSchedule" && effect != "PreferNoSchedule" &&
        effect != "NoExecute") {
      errors.push_back(NotSupportedError(PathField(at, "effect"), effect,
                                         {"NoSchedule", "PreferNoSchedule", "NoExecute"}));
    }
    if (MemberOf(tolerations[i], "tolerationSeconds") && effect != "NoExecute") {
      errors.push_back(InvalidText(PathField(at, "effect"), effect,
                                   "effect must be 'NoExecute' when `tolerationSeconds` is set"));
    }
  }
}

void CheckSpread(const Value& spec, const std::string& path, FieldErrors& errors) {
  const json::Array& list = json::GetArray(spec, {"topologySpreadConstraints"});
  std::set<std::string> seen;
  for (size_t i = 0; i < list.size(); ++i) {
    std::string at = PathIndex(PathField(path, "topologySpreadConstraints"), i);
    const Value* skew = MemberOf(list[i], "maxSkew");
    if (skew != nullptr && json::GetInt(list[i], {"maxSkew"}) <= 0) {
      errors.push_back(InvalidError(PathField(at, "maxSkew"), *skew, "must be greater than 0"));
    }
    std::string_view key = TextOf(list[i], "topologyKey");
    if (key.empty()) {
      errors.push_back(RequiredError(PathField(at, "topologyKey"), "can not be empty"));
    } else if (std::string why = CheckQualifiedName(key); !why.empty()) {
      errors.push_back(InvalidText(PathField(at, "topologyKey"), key, why));
    }
    std::string pair = StrCat("{", key, ", ", TextOf(list[i], "whenUnsatisfiable"), "}");
    if (!seen.insert(pair).second) {
      errors.push_back(DuplicateError(at, Value(pair)));
    }
    if (const Value* selector = MemberOf(list[i], "labelSelector")) {
      CheckLabelSelector(*selector, PathField(at, "labelSelector"), errors);
    }
  }
}

void CheckPodWords(const Value& spec, const std::string& path, FieldErrors& errors) {
  for (std::string_view key : {"hostname", "subdomain"}) {
    std::string_view value = TextOf(spec, key);
    if (value.empty()) continue;
    if (std::string why = CheckDnsLabel(value); !why.empty()) {
      errors.push_back(InvalidText(PathField(path, key), value, why));
    }
  }
  for (std::string_view key :
       {"serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"}) {
    std::string_view value = TextOf(spec, key);
    if (value.empty()) continue;
    if (std::string why = CheckDnsSubdomain(value); !why.empty()) {
      errors.push_back(InvalidText(PathField(path, key), value, why));
    }
  }
  const Value* deadline = MemberOf(spec, "activeDeadlineSeconds");
  int64_t seconds = json::GetInt(spec, {"activeDeadlineSeconds"});
  if (deadline != nullptr && (seconds < 1 || seconds > 2147483647)) {
    errors.push_back(InvalidError(PathField(path, "activeDeadlineSeconds"), *deadline,
                                  "must be between 1 and 2147483647, inclusive"));
  }
  CheckNonNegative(spec, "terminationGracePeriodSeconds", path, errors);
  if (const Value* selector = MemberOf(spec, "nodeSelector")) {
    CheckLabels(*selector, PathField(path, "nodeSelector"), errors);
  }
  std::set<std::string> gates;
  const json::Array& list = json::GetArray(spec, {"schedulingGates"});
  for (size_t i = 0; i < list.size(); ++i) {
    std::string name(TextOf(list[i], "name"));
    std::string at = PathIndex(PathField(path, "schedulingGates"), i);
    if (std::string why = CheckQualifiedName(name); !why.empty()) {
      errors.push_back(InvalidText(at, name, why));
    } else if (!gates.insert(name).second) {
      errors.push_back(DuplicateError(at, Value(name)));
    }
  }
}

}  // namespace

void CheckPodSpec(const Value& spec, const std::string& path, FieldErrors& errors) {
  CheckVolumes(spec, path, errors);
  std::set<std::string> volumes;
  for (const Value& volume : json::GetArray(spec, {"volumes"})) {
    volumes.emplace(TextOf(volume, "name"));
  }
  if (json::GetArray(spec, {"containers"}).empty() && MemberOf(spec, "containers")) {
    errors.push_back(RequiredError(PathField(path, "containers")));
  }
  std::set<std::string> names;
  CheckContainers(spec, "containers", names, volumes, path, errors);
  CheckContainers(spec, "initContainers", names, volumes, path, errors);
  CheckHostPorts(spec, path, errors);
  CheckPodWords(spec, path, errors);
  CheckSecurityContext(spec, path, errors);
  CheckTolerations(spec, path, errors);
  CheckAffinity(spec, path, errors);
  CheckSpread(spec, path, errors);
  if (!json::GetArray(spec, {"ephemeralContainers"}).empty()) {
    errors.push_back(
        ForbiddenError(PathField(path, "ephemeralContainers"), "cannot be set on create"));
  }
}

void CheckPodTemplate(const Value& holder, const std::string& path, FieldErrors& errors) {
  const Value* pod = MemberOf(holder, "template");
  if (pod == nullptr) return;
  std::string at = PathField(path, "template");
  if (const Value* labels = json::Find(*pod, {"metadata", "labels"})) {
    CheckLabels(*labels, PathField(at, "metadata.labels"), errors);
  }
  if (const Value* annotations = json::Find(*pod, {"metadata", "annotations"})) {
    CheckAnnotations(*annotations, PathField(at, "metadata.annotations"), errors);
  }
  const Value* spec = MemberOf(*pod, "spec");
  if (spec == nullptr) {
    errors.push_back(RequiredError(PathField(at, "spec.containers")));
  } else {
    CheckPodSpec(*spec, PathField(at, "spec"), errors);
  }
}

}  // namespace swell::api
