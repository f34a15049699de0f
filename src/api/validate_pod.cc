// A pod's spec: containers, names, ports, environment, security, scheduling.
#include <algorithm>
#include <set>

#include "api/meta.h"
#include "api/quantity.h"
#include "api/validate_rules.h"
#include "base/strings.h"

namespace swell::api {
namespace {

using json::Value;

void CheckContainerPorts(const Value& container, const std::string& path, FieldErrors& errors) {
  const json::Array& ports = json::GetArray(container, {"ports"});
  std::set<std::string> names;
  for (size_t i = 0; i < ports.size(); ++i) {
    std::string at = PathIndex(PathField(path, "ports"), i);
    std::string_view name = TextOf(ports[i], "name");
    if (!name.empty()) {
      if (!CheckPortName(name, PathField(at, "name"), errors)) {
        names.emplace(name);
      } else if (!names.emplace(name).second) {
        errors.push_back(DuplicateError(PathField(at, "name"), Value(name)));
      }
    }
    int64_t port = json::GetInt(ports[i], {"containerPort"});
    if (port == 0) {
      errors.push_back(RequiredError(PathField(at, "containerPort")));
    } else if (std::string why = CheckPort(port); !why.empty()) {
      errors.push_back(InvalidError(PathField(at, "containerPort"), Value(port), why));
    }
    int64_t host = json::GetInt(ports[i], {"hostPort"});
    if (std::string why = CheckPort(host); host != 0 && !why.empty()) {
      errors.push_back(InvalidError(PathField(at, "hostPort"), Value(host), why));
    }
    CheckOneOf(ports[i], "protocol", at, {"SCTP", "TCP", "UDP"}, errors);
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

void CheckFieldRef(const Value& ref, const std::string& at, FieldErrors& errors) {
  static const std::vector<std::string> kKnown = {
      "metadata.name", "metadata.namespace",      "metadata.uid",
      "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
      "status.podIP",  "status.podIPs",           "status.hostIPs"};
  const std::string_view field = TextOf(ref, "fieldPath");
  if (field.empty()) {
    errors.push_back(RequiredError(at));
    return;
  }
  if (field.starts_with("metadata.labels['") || field.starts_with("metadata.annotations['")) return;
  if (std::find(kKnown.begin(), kKnown.end(), field) != kKnown.end()) return;
  // What can be selected by and is not offered here, and what is no field at all.
  if (field == "metadata.labels" || field == "metadata.annotations" || field == "status.phase" ||
      field == "spec.restartPolicy" || field == "spec.schedulerName") {
    errors.push_back(NotSupportedError(at, field, {kKnown.begin(), kKnown.end() - 1}));
  } else {
    errors.push_back(InvalidText(
        at, field, StrCat("error converting fieldPath: field label not supported: ", field)));
  }
}

void CheckResourceRef(const Value& ref, const std::string& at, FieldErrors& errors) {
  const std::string_view resource = TextOf(ref, "resource");
  if (resource.empty()) {
    errors.push_back(RequiredError(at));
  } else if (!resource.starts_with("limits.hugepages-") &&
             !resource.starts_with("requests.hugepages-")) {
    CheckOneOf(ref, "resource", at.substr(0, at.rfind('.')),
               {"limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu",
                "requests.ephemeral-storage", "requests.memory"},
               errors);
  }
}

// A key of a ConfigMap or Secret.
void CheckKeyRef(const Value& ref, const std::string& at, FieldErrors& errors) {
  const std::string_view key = TextOf(ref, "key");
  if (const std::string_view name = TextOf(ref, "name"); MemberOf(ref, "name") != nullptr) {
    if (std::string why = CheckDnsSubdomain(name); !why.empty()) {
      errors.push_back(InvalidText(PathField(at, "name"), name, why));
    }
  }
  if (key.empty()) {
    errors.push_back(RequiredError(PathField(at, "key")));
  } else if (std::string why = CheckConfigMapKey(key); !why.empty()) {
    errors.push_back(InvalidText(PathField(at, "key"), key, why));
  }
}

void CheckEnvSource(const Value& variable, const std::string& at, FieldErrors& errors) {
  const Value& source = *MemberOf(variable, "valueFrom");
  int sources = 0;
  for (std::string_view key : {"fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef"}) {
    const Value* ref = MemberOf(source, key);
    if (ref == nullptr) continue;
    ++sources;
    const std::string ref_at = PathField(at, key);
    if (key == "fieldRef") {
      CheckFieldRef(*ref, PathField(ref_at, "fieldPath"), errors);
    } else if (key == "resourceFieldRef") {
      CheckResourceRef(*ref, PathField(ref_at, "resource"), errors);
    } else {
      CheckKeyRef(*ref, ref_at, errors);
    }
  }
  if (sources == 0) {
    errors.push_back(InvalidText(at, "",
                                 "must specify one of: `fieldRef`, `resourceFieldRef`, "
                                 "`configMapKeyRef` or `secretKeyRef`"));
  } else if (!TextOf(variable, "value").empty()) {
    errors.push_back(InvalidText(at, "", "may not be specified when `value` is not empty"));
  } else if (sources > 1) {
    errors.push_back(InvalidText(at, "", "may not have more than one field specified at a time"));
  }
}

// The list's elements are told without their place, as Kubernetes does.
void CheckEnvFrom(const Value& container, const std::string& path, FieldErrors& errors) {
  const json::Array& from = json::GetArray(container, {"envFrom"});
  const std::string list_at = PathField(path, "envFrom");
  for (size_t i = 0; i < from.size(); ++i) {
    const std::string at = PathIndex(list_at, i);
    const std::string_view prefix = TextOf(from[i], "prefix");
    if (std::string why = prefix.empty() ? std::string() : CheckEnvVarName(prefix); !why.empty()) {
      errors.push_back(InvalidText(PathField(at, "prefix"), prefix, why));
    }
    int sources = 0;
    for (std::string_view key : {"configMapRef", "secretRef"}) {
      const Value* ref = MemberOf(from[i], key);
      if (ref == nullptr) continue;
      ++sources;
      if (TextOf(*ref, "name").empty()) {
        errors.push_back(RequiredError(PathField(PathField(at, key), "name")));
      }
    }
    if (sources == 1) continue;
    errors.push_back(InvalidText(list_at, "",
                                 sources == 0
                                     ? "must specify one of: `configMapRef` or `secretRef`"
                                     : "may not have more than one field specified at a time"));
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
    if (MemberOf(env[i], "valueFrom") != nullptr) {
      CheckEnvSource(env[i], PathField(at, "valueFrom"), errors);
    }
  }
}

bool GoesUp(std::string_view path) {
  for (std::string_view part : Split(path, '/')) {
    if (part == "..") return true;
  }
  return false;
}

void CheckSubPath(const Value& mount,
                  std::string_view key,
                  const std::string& list_at,
                  FieldErrors& errors) {
  const std::string_view path = TextOf(mount, key);
  if (path.starts_with('/')) {
    errors.push_back(InvalidText(PathField(list_at, key), path, "must be a relative path"));
  }
  if (GoesUp(path)) {
    errors.push_back(InvalidText(PathField(list_at, key), path, "must not contain '..'"));
  }
}

std::set<std::string> NamesIn(const Value& container, std::string_view list) {
  std::set<std::string> names;
  for (const Value& item : json::GetArray(container, {list})) names.emplace(TextOf(item, "name"));
  return names;
}

void CheckMounts(const Value& container,
                 const std::set<std::string>& volumes,
                 const std::string& path,
                 FieldErrors& errors) {
  const json::Array& mounts = json::GetArray(container, {"volumeMounts"});
  const std::set<std::string> devices = NamesIn(container, "volumeDevices");
  const std::string list_at = PathField(path, "volumeMounts");
  std::set<std::string> points;
  for (size_t i = 0; i < mounts.size(); ++i) {
    std::string at = PathIndex(list_at, i);
    std::string name(TextOf(mounts[i], "name"));
    std::string point(TextOf(mounts[i], "mountPath"));
    if (name.empty()) errors.push_back(RequiredError(PathField(at, "name")));
    if (!volumes.contains(name)) errors.push_back(NotFoundError(PathField(at, "name"), name));
    if (point.empty()) errors.push_back(RequiredError(PathField(at, "mountPath")));
    if (!points.insert(point).second) {
      errors.push_back(InvalidText(PathField(at, "mountPath"), point, "must be unique"));
    }
    if (devices.contains(name)) {
      errors.push_back(
          InvalidText(PathField(at, "name"), name, "must not already exist in volumeDevices"));
    }
    CheckSubPath(mounts[i], "subPath", list_at, errors);
    if (!TextOf(mounts[i], "subPath").empty() && !TextOf(mounts[i], "subPathExpr").empty()) {
      errors.push_back(InvalidText(PathField(at, "subPathExpr"), TextOf(mounts[i], "subPathExpr"),
                                   "subPathExpr and subPath are mutually exclusive"));
    }
    CheckSubPath(mounts[i], "subPathExpr", list_at, errors);
    CheckOneOf(mounts[i], "mountPropagation", list_at, {"Bidirectional", "HostToContainer", "None"},
               errors);
  }
}

void CheckSecurityContext(const Value& holder, const std::string& path, FieldErrors& errors) {
  const Value* context = MemberOf(holder, "securityContext");
  if (context == nullptr) return;
  std::string at = PathField(path, "securityContext");
  constexpr int64_t kMaxId = 2147483647;
  for (std::string_view key : {"fsGroup", "runAsUser", "runAsGroup"}) {
    const Value* id = MemberOf(*context, key);
    int64_t value = json::GetInt(*context, {key});
    if (id != nullptr && (value < 0 || value > kMaxId)) {
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
  CheckOneOf(*context, "procMount", at, {"Default", "Unmasked"}, errors);
  const json::Array& groups = json::GetArray(*context, {"supplementalGroups"});
  for (size_t i = 0; i < groups.size(); ++i) {
    const int64_t id = json::GetInt(groups[i], {});
    if (id >= 0 && id <= kMaxId) continue;
    errors.push_back(InvalidError(PathIndex(PathField(at, "supplementalGroups"), i), groups[i],
                                  "must be between 0 and 2147483647, inclusive"));
  }
}

void CheckContainer(const Value& container,
                    const std::set<std::string>& volumes,
                    const std::string& path,
                    FieldErrors& errors) {
  if (TextOf(container, "image").empty()) {
    errors.push_back(RequiredError(PathField(path, "image")));
  }
  CheckLifecycle(container, path, errors);
  CheckProbe(container, "livenessProbe", path, errors);
  CheckProbe(container, "startupProbe", path, errors);
  const std::string_view message = TextOf(container, "terminationMessagePolicy");
  if (!message.empty() && message != "File" && message != "FallbackToLogsOnError") {
    errors.push_back(InvalidText(PathField(path, "terminationMessagePolicy"), message,
                                 "must be 'File' or 'FallbackToLogsOnError'"));
  }
  CheckProbe(container, "readinessProbe", path, errors);
  CheckContainerPorts(container, path, errors);
  CheckEnv(container, path, errors);
  CheckEnvFrom(container, path, errors);
  CheckMounts(container, volumes, path, errors);
  CheckOneOf(container, "imagePullPolicy", path, {"Always", "IfNotPresent", "Never"}, errors);
  if (const Value* resources = MemberOf(container, "resources")) {
    CheckResources(*resources, PathField(path, "resources"), errors);
  }
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
    }
    if (!names.insert(name).second && !name.empty()) {
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
        errors.push_back(
            {"FieldValueInvalid", PathField(at, "operator"),
             StrCat("Invalid value: core.Toleration{Key:", Quote(key), ", Operator:", Quote(op),
                    ", Value:", Quote(value), ", Effect:", Quote(effect),
                    ", TolerationSeconds:(*int64)(nil)}: value must be empty when `operator` is "
                    "'Exists'")});
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
    if (const int64_t skew = json::GetInt(list[i], {"maxSkew"}); skew <= 0) {
      errors.push_back(
          InvalidError(PathField(at, "maxSkew"), Value(skew), "must be greater than zero"));
    }
    std::string_view key = TextOf(list[i], "topologyKey");
    if (key.empty()) {
      errors.push_back(RequiredError(PathField(at, "topologyKey"), "can not be empty"));
    } else if (std::string why = CheckQualifiedName(key); !why.empty()) {
      errors.push_back(InvalidText(PathField(at, "topologyKey"), key, why));
    }
    const std::string_view when = TextOf(list[i], "whenUnsatisfiable");
    if (when != "DoNotSchedule" && when != "ScheduleAnyway") {
      errors.push_back(NotSupportedError(PathField(at, "whenUnsatisfiable"), when,
                                         {"DoNotSchedule", "ScheduleAnyway"}));
    }
    std::string pair = StrCat("{", key, ", ", when, "}");
    if (!seen.insert(pair).second) {
      errors.push_back(
          DuplicateError(PathField(at, "{topologyKey, whenUnsatisfiable}"), Value(pair)));
    }
    if (const Value* selector = MemberOf(list[i], "labelSelector")) {
      CheckLabelSelector(*selector, PathField(at, "labelSelector"), errors);
    }
  }
}

void CheckDns(const Value& spec, const std::string& path, FieldErrors& errors) {
  constexpr size_t kServersMax = 3;
  const Value* config = MemberOf(spec, "dnsConfig");
  const std::string at = PathField(path, "dnsConfig");
  const bool alone = TextOf(spec, "dnsPolicy") == "None";
  if (config == nullptr) {
    if (alone) {
      errors.push_back(RequiredError(at, "must provide `dnsConfig` when `dnsPolicy` is None"));
    }
    return;
  }
  const json::Array& servers = json::GetArray(*config, {"nameservers"});
  const std::string servers_at = PathField(at, "nameservers");
  if (alone && servers.empty()) {
    errors.push_back(RequiredError(servers_at,
                                   "must provide at least one DNS nameserver when `dnsPolicy` "
                                   "is None"));
  }
  if (servers.size() > kServersMax) {
    errors.push_back(InvalidTexts(servers_at, servers,
                                  StrCat("must not have more than ", kServersMax, " nameservers")));
  }
  for (size_t i = 0; i < servers.size(); ++i) {
    if (CheckIp(TextIn(servers[i])).empty()) continue;
    errors.push_back(
        InvalidText(PathIndex(servers_at, i), TextIn(servers[i]), "must be valid IP address"));
  }
  const json::Array& searches = json::GetArray(*config, {"searches"});
  for (size_t i = 0; i < searches.size(); ++i) {
    std::string_view search = TextIn(searches[i]);
    if (search.ends_with('.')) search.remove_suffix(1);
    if (std::string why = CheckDnsSubdomain(search); !why.empty()) {
      errors.push_back(InvalidText(PathIndex(PathField(at, "searches"), i), search, why));
    }
  }
  const json::Array& options = json::GetArray(*config, {"options"});
  for (size_t i = 0; i < options.size(); ++i) {
    if (!TextOf(options[i], "name").empty()) continue;
    errors.push_back(RequiredError(PathIndex(PathField(at, "options"), i), "must not be empty"));
  }
}

void CheckHostAliases(const Value& spec, const std::string& path, FieldErrors& errors) {
  const json::Array& aliases = json::GetArray(spec, {"hostAliases"});
  const std::string list_at = PathField(path, "hostAliases");
  for (size_t i = 0; i < aliases.size(); ++i) {
    const std::string_view ip = TextOf(aliases[i], "ip");
    if (!CheckIp(ip).empty()) {
      errors.push_back(InvalidText(PathField(list_at, "ip"), ip, "must be valid IP address"));
    }
    for (const Value& name : json::GetArray(aliases[i], {"hostnames"})) {
      if (std::string why = CheckDnsSubdomain(TextIn(name)); !why.empty()) {
        errors.push_back(InvalidText(PathField(list_at, "hostnames"), TextIn(name), why));
      }
    }
  }
}

void CheckPodNames(const Value& spec, const std::string& path, FieldErrors& errors) {
  CheckSubdomain(spec, "serviceAccountName", path, errors);
  CheckSubdomain(spec, "nodeName", path, errors);
  const Value* deadline = MemberOf(spec, "activeDeadlineSeconds");
  int64_t seconds = json::GetInt(spec, {"activeDeadlineSeconds"});
  if (deadline != nullptr && (seconds < 1 || seconds > 2147483647)) {
    errors.push_back(InvalidError(PathField(path, "activeDeadlineSeconds"), *deadline,
                                  "must be between 1 and 2147483647, inclusive"));
  }
  for (std::string_view key : {"hostname", "subdomain"}) {
    std::string_view value = TextOf(spec, key);
    if (value.empty()) continue;
    if (std::string why = CheckDnsLabel(value); !why.empty()) {
      errors.push_back(InvalidText(PathField(path, key), value, why));
    }
  }
}

void CheckGates(const Value& spec, const std::string& path, FieldErrors& errors) {
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
  const json::Array& readiness = json::GetArray(spec, {"readinessGates"});
  for (size_t i = 0; i < readiness.size(); ++i) {
    const std::string_view type = TextOf(readiness[i], "conditionType");
    if (std::string why = CheckQualifiedName(type); !why.empty()) {
      errors.push_back(InvalidText(
          PathField(PathIndex(PathField(path, "readinessGates"), i), "conditionType"), type, why));
    }
  }
}

// Only a pod's own containers: templates were always let through with it.
void CheckImages(const Value& spec, std::string_view key, FieldErrors& errors) {
  const json::Array& containers = json::GetArray(spec, {key});
  for (size_t i = 0; i < containers.size(); ++i) {
    const std::string_view image = TextOf(containers[i], "image");
    if (Trim(image) == image) continue;
    errors.push_back(InvalidText(PathField(PathIndex(PathField("spec", key), i), "image"), image,
                                 "must not have leading or trailing whitespace"));
  }
}

}  // namespace

// In the order in which Kubernetes looks at a spec.
void CheckPodSpec(const Value& spec, const std::string& path, FieldErrors& errors) {
  CheckVolumes(spec, path, errors);
  const std::set<std::string> volumes = NamesIn(spec, "volumes");
  if (json::GetArray(spec, {"containers"}).empty()) {
    errors.push_back(RequiredError(PathField(path, "containers")));
  }
  std::set<std::string> names;
  CheckContainers(spec, "containers", names, volumes, path, errors);
  CheckHostPorts(spec, path, errors);
  CheckContainers(spec, "initContainers", names, volumes, path, errors);
  CheckOneOf(spec, "restartPolicy", path, {"Always", "OnFailure", "Never"}, errors);
  CheckOneOf(spec, "dnsPolicy", path,
             {"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"}, errors);
  if (const Value* selector = MemberOf(spec, "nodeSelector")) {
    CheckLabels(*selector, PathField(path, "nodeSelector"), errors);
  }
  CheckSecurityContext(spec, path, errors);
  CheckAffinity(spec, path, errors);
  CheckDns(spec, path, errors);
  CheckGates(spec, path, errors);
  CheckSpread(spec, path, errors);
  CheckPodNames(spec, path, errors);
  CheckNonNegative(spec, "terminationGracePeriodSeconds", path, errors);
  CheckTolerations(spec, path, errors);
  CheckHostAliases(spec, path, errors);
  CheckSubdomain(spec, "priorityClassName", path, errors);
  CheckSubdomain(spec, "runtimeClassName", path, errors);
  CheckOneOf(spec, "preemptionPolicy", path, {"Never", "PreemptLowerPriority"}, errors);
}

void CheckPod(const Value& pod, FieldErrors& errors) {
  const Value& spec = SpecOf(pod);
  CheckPodSpec(spec, "spec", errors);
  CheckImages(spec, "containers", errors);
  CheckImages(spec, "initContainers", errors);
  if (!json::GetArray(spec, {"ephemeralContainers"}).empty()) {
    errors.push_back(ForbiddenError("spec.ephemeralContainers", "cannot be set on create"));
  }
}

void CheckPodTemplate(const Value& holder, const std::string& path, FieldErrors& errors) {
  static const Value kNothing = json::Object();
  const Value* given = MemberOf(holder, "template");
  const Value& pod = given ? *given : kNothing;
  std::string at = PathField(path, "template");
  if (const Value* labels = json::Find(pod, {"metadata", "labels"})) {
    CheckLabels(*labels, PathField(at, "labels"), errors);
  }
  if (const Value* annotations = json::Find(pod, {"metadata", "annotations"})) {
    CheckAnnotations(*annotations, PathField(at, "annotations"), errors);
  }
  CheckPodSpec(SpecOf(pod), PathField(at, "spec"), errors);
}

}  // namespace swell::api
