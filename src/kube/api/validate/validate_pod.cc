// A pod's spec: containers, names, ports, environment, security, scheduling.
#include <algorithm>
#include <set>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/validate/validate_rules.h"

namespace swell::api {
namespace {

using json::Value;

// What a node tells of a pod grows with each of them, and is told anew for each.
constexpr size_t kContainersMax = 1000;

void CheckContainerPorts(const Value& container, const std::string& path, FieldErrors& errors) {
  std::set<std::string> names;
  for (const auto& [one, at] : ItemsOf(container, "ports", path)) {
    std::string_view name = TextOf(one, "name");
    if (!name.empty()) {
      if (!CheckPortName(name, PathField(at, "name"), errors)) {
        names.emplace(name);
      } else if (!names.emplace(name).second) {
        errors.push_back(DuplicateError(PathField(at, "name"), Value(name)));
      }
    }
    int64_t port = json::GetInt(one, {"containerPort"});
    if (port == 0) {
      errors.push_back(RequiredError(PathField(at, "containerPort")));
    } else {
      CheckPort(port, PathField(at, "containerPort"), errors);
    }
    int64_t host = json::GetInt(one, {"hostPort"});
    if (host != 0) CheckPort(host, PathField(at, "hostPort"), errors);
    CheckOneOf(one, "protocol", at, {"SCTP", "TCP", "UDP"}, errors);
  }
}

void CheckHostPorts(const Value& spec, const std::string& path, FieldErrors& errors) {
  std::set<std::string> taken;
  bool host_network = json::GetBool(spec, {"hostNetwork"});
  for (const auto& [container, container_at] : ItemsOf(spec, "containers", path)) {
    const json::Array& ports = json::GetArray(container, {"ports"});
    for (size_t i = 0; i < ports.size(); ++i) {
      int64_t host = json::GetInt(ports[i], {"hostPort"});
      if (host == 0) continue;
      std::string at = PathIndex(PathField(container_at, "ports"), i);
      std::string key =
          StrCat(TextOf(ports[i], "protocol"), "/", TextOf(ports[i], "hostIP"), "/", host);
      if (!taken.insert(key).second) {
        errors.push_back(DuplicateError(PathField(at, "hostPort"), Value(key)));
      }
      int64_t port = json::GetInt(ports[i], {"containerPort"});
      if (host_network && port != host) {
        errors.push_back(InvalidError(PathField(at, "hostPort"), Value(host),
                                      "must match `containerPort` when `hostNetwork` is true"));
      }
    }
  }
}

// A key of a ConfigMap or Secret.
void CheckKeyRef(const Value& ref, const std::string& at, FieldErrors& errors) {
  const std::string_view key = TextOf(ref, "key");
  const std::string_view name = TextOf(ref, "name");
  CheckText(name, CheckDnsSubdomain, PathField(at, "name"), errors);
  CheckRequired(key, CheckConfigMapKey, PathField(at, "key"), errors);
}

// A pod's volumes by name, and those of them that are claims or empty directories.
struct PodVolumes {
  explicit PodVolumes(const Value& spec) {
    for (const Value& volume : json::GetArray(spec, {"volumes"})) {
      const std::string name(TextOf(volume, "name"));
      all.insert(name);
      if (MemberOf(volume, "persistentVolumeClaim") != nullptr) claims.insert(name);
      if (MemberOf(volume, "emptyDir") != nullptr) empty_dirs.insert(name);
    }
  }
  std::set<std::string, std::less<>> all, claims, empty_dirs;
};

// A variable in a file, which only another container of the pod can have written.
void CheckFileKeyRef(const Value& ref,
                     const PodVolumes& volumes,
                     const std::string& at,
                     FieldErrors& errors) {
  const std::string_view key = TextOf(ref, "key");
  const std::string_view volume = TextOf(ref, "volumeName");
  const std::string_view path = TextOf(ref, "path");
  const std::string volume_at = PathField(at, "volumeName");
  CheckRequired(key, CheckEnvVarName, PathField(at, "key"), errors);
  if (volume.empty()) {
    errors.push_back(RequiredError(volume_at));
  } else if (!volumes.all.contains(volume)) {
    errors.push_back(NotFoundError(volume_at, volume));
  } else if (!volumes.empty_dirs.contains(volume)) {
    errors.push_back(InvalidText(volume_at, volume, "referenced volume must be of type emptyDir"));
  }
  if (path.empty()) errors.push_back(RequiredError(PathField(at, "path")));
  if (GoesUp(path)) {
    errors.push_back(InvalidText(PathField(at, "path"), path, "must not contain '..'"));
  }
}

void CheckEnvSource(const Value& variable,
                    const PodVolumes& volumes,
                    const std::string& at,
                    FieldErrors& errors) {
  const Value& source = *MemberOf(variable, "valueFrom");
  int sources = 0;
  for (std::string_view key :
       {"fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"}) {
    const Value* ref = MemberOf(source, key);
    if (ref == nullptr) continue;
    ++sources;
    const std::string ref_at = PathField(at, key);
    if (key == "fieldRef") {
      CheckFieldRef(*ref, FieldsForVariables(), ref_at, errors);
    } else if (key == "resourceFieldRef") {
      CheckResourceRef(*ref, false, ref_at, errors);
    } else if (key == "fileKeyRef") {
      CheckFileKeyRef(*ref, volumes, ref_at, errors);
    } else {
      CheckKeyRef(*ref, ref_at, errors);
    }
  }
  if (sources == 0) {
    errors.push_back(InvalidText(at, "",
                                 "must specify one of: `fieldRef`, `resourceFieldRef`, "
                                 "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"));
  } else if (!TextOf(variable, "value").empty()) {
    errors.push_back(InvalidText(at, "", "may not be specified when `value` is not empty"));
  } else if (sources > 1) {
    errors.push_back(InvalidText(at, "", "may not have more than one field specified at a time"));
  }
}

// The list's elements are told without their place, as Kubernetes does.
void CheckEnvFrom(const Value& container, const std::string& path, FieldErrors& errors) {
  const std::string list_at = PathField(path, "envFrom");
  for (const auto& [source, at] : ItemsOf(json::GetArray(container, {"envFrom"}), list_at)) {
    const std::string_view prefix = TextOf(source, "prefix");
    if (!prefix.empty()) CheckText(prefix, CheckEnvVarName, PathField(at, "prefix"), errors);
    int sources = 0;
    for (std::string_view key : {"configMapRef", "secretRef"}) {
      const Value* ref = MemberOf(source, key);
      if (ref == nullptr) continue;
      ++sources;
      const std::string ref_at = PathField(at, key);
      if (TextOf(*ref, "name").empty()) errors.push_back(RequiredError(PathField(ref_at, "name")));
      CheckSubdomain(*ref, "name", ref_at, errors);
    }
    if (sources == 1) continue;
    errors.push_back(InvalidText(list_at, "",
                                 sources == 0
                                     ? "must specify one of: `configMapRef` or `secretRef`"
                                     : "may not have more than one field specified at a time"));
  }
}

void CheckEnv(const Value& container,
              const PodVolumes& volumes,
              const std::string& path,
              FieldErrors& errors) {
  for (const auto& [variable, at] : ItemsOf(container, "env", path)) {
    std::string_view name = TextOf(variable, "name");
    CheckRequired(name, CheckEnvVarName, PathField(at, "name"), errors);
    if (MemberOf(variable, "valueFrom") != nullptr) {
      CheckEnvSource(variable, volumes, PathField(at, "valueFrom"), errors);
    }
  }
}

std::set<std::string> NamesIn(const Value& container, std::string_view list) {
  std::set<std::string> names;
  for (const Value& item : json::GetArray(container, {list})) names.emplace(TextOf(item, "name"));
  return names;
}

void CheckMounts(const Value& container,
                 const std::set<std::string, std::less<>>& volumes,
                 const std::string& path,
                 FieldErrors& errors) {
  const std::set<std::string> devices = NamesIn(container, "volumeDevices");
  const std::string list_at = PathField(path, "volumeMounts");
  std::set<std::string> points;
  for (const auto& [mount, at] : ItemsOf(json::GetArray(container, {"volumeMounts"}), list_at)) {
    std::string name(TextOf(mount, "name"));
    std::string point(TextOf(mount, "mountPath"));
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
    CheckDescendingPath(TextOf(mount, "subPath"), PathField(list_at, "subPath"), errors);
    if (!TextOf(mount, "subPath").empty() && !TextOf(mount, "subPathExpr").empty()) {
      errors.push_back(InvalidText(PathField(at, "subPathExpr"), TextOf(mount, "subPathExpr"),
                                   "subPathExpr and subPath are mutually exclusive"));
    }
    CheckDescendingPath(TextOf(mount, "subPathExpr"), PathField(list_at, "subPathExpr"), errors);
    CheckOneOf(mount, "mountPropagation", list_at, {"Bidirectional", "HostToContainer", "None"},
               errors);
    if (TextOf(mount, "mountPropagation") == "Bidirectional" &&
        !json::GetBool(container, {"securityContext", "privileged"})) {
      errors.push_back(ForbiddenError(
          PathField(list_at, "mountPropagation"),
          "Bidirectional mount propagation is available only to privileged containers"));
    }
  }
}

void CheckDevices(const Value& container,
                  const std::set<std::string, std::less<>>& volumes,
                  const std::set<std::string, std::less<>>& claims,
                  const std::string& path,
                  FieldErrors& errors) {
  const std::set<std::string> mounts = NamesIn(container, "volumeMounts");
  std::set<std::string> names;
  std::set<std::string> paths;
  for (const auto& [one, at] : ItemsOf(container, "volumeDevices", path)) {
    const std::string name_at = PathField(at, "name");
    const std::string path_at = PathField(at, "devicePath");
    std::string name(TextOf(one, "name"));
    std::string device(TextOf(one, "devicePath"));
    if (name.empty()) errors.push_back(RequiredError(name_at));
    if (names.contains(name)) errors.push_back(InvalidText(name_at, name, "must be unique"));
    if (!volumes.contains(name)) {
      errors.push_back(NotFoundError(name_at, name));
    } else if (!claims.contains(name)) {
      errors.push_back(
          InvalidText(name_at, name,
                      "can only use volume source type of PersistentVolumeClaim for block mode"));
    }
    if (device.empty()) errors.push_back(RequiredError(path_at));
    if (paths.contains(device)) errors.push_back(InvalidText(path_at, device, "must be unique"));
    if (GoesUp(device)) {
      errors.push_back(InvalidText(path_at, device, "can not contain backsteps ('..')"));
    } else {
      paths.insert(device);
    }
    if (mounts.contains(name)) {
      errors.push_back(InvalidText(name_at, name, "must not already exist in volumeMounts"));
    }
    if (!name.empty()) names.insert(name);
  }
}

void CheckContainer(const Value& container,
                    const PodVolumes& volumes,
                    const std::string& path,
                    FieldErrors& errors) {
  if (TextOf(container, "image").empty()) {
    errors.push_back(RequiredError(PathField(path, "image")));
  }
  CheckLifecycle(container, path, errors);
  CheckProbe(container, "livenessProbe", path, errors);
  CheckProbe(container, "startupProbe", path, errors);
  CheckOneOf(container, "terminationMessagePolicy", path, {"File", "FallbackToLogsOnError"},
             errors);
  CheckProbe(container, "readinessProbe", path, errors);
  CheckContainerPorts(container, path, errors);
  CheckEnv(container, volumes, path, errors);
  CheckEnvFrom(container, path, errors);
  CheckMounts(container, volumes.all, path, errors);
  CheckDevices(container, volumes.all, volumes.claims, path, errors);
  CheckOneOf(container, "imagePullPolicy", path, {"Always", "IfNotPresent", "Never"}, errors);
  if (const Value* resources = MemberOf(container, "resources")) {
    CheckResources(*resources, PathField(path, "resources"), errors);
  }
  CheckContainerSecurity(container, path, errors);
}

// What makes no sense for a container that ends before the others start. A sidecar does not.
void CheckInitContainer(const Value& container, const std::string& path, FieldErrors& errors) {
  if (TextOf(container, "restartPolicy") == "Always") return;
  for (std::string_view key : {"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"}) {
    const Value* value = MemberOf(container, key);
    if (value == nullptr) continue;
    errors.push_back(
        InvalidError(PathField(path, key), *value, "must not be set for init containers"));
  }
}

// When the container alone starts again. The schema has checked each rule's action and operator.
void CheckRestart(const Value& container, const std::string& path, FieldErrors& errors) {
  constexpr size_t kRulesMax = 20;
  constexpr size_t kCodesMax = 255;
  const std::string_view policy = TextOf(container, "restartPolicy");
  const json::Array& rules = json::GetArray(container, {"restartPolicyRules"});
  const std::string at = PathField(path, "restartPolicyRules");
  if (policy.empty() && !rules.empty()) {
    errors.push_back(RequiredError(PathField(path, "restartPolicy"),
                                   "must specify restartPolicy when restart rules are used"));
  }
  CheckOneOf(container, "restartPolicy", path, {"Always", "Never", "OnFailure"}, errors);
  if (rules.size() > kRulesMax) errors.push_back(TooManyError(at, rules.size(), kRulesMax));
  for (const auto& [one, item_at] : ItemsOf(rules, at)) {
    if (MemberOf(one, "exitCodes") == nullptr) {
      errors.push_back(RequiredError(item_at + ".exitCodes", "must be specified"));
    }
    const size_t codes = json::GetArray(one, {"exitCodes", "values"}).size();
    if (codes > kCodesMax) {
      errors.push_back(TooManyError(item_at + ".exitCodes.values", codes, kCodesMax));
    }
  }
}

void CheckContainers(const Value& spec,
                     std::string_view key,
                     std::set<std::string>& names,
                     const PodVolumes& volumes,
                     const std::string& path,
                     FieldErrors& errors) {
  const json::Array& containers = json::GetArray(spec, {key});
  if (containers.size() > kContainersMax) {
    errors.push_back(TooManyError(PathField(path, key), containers.size(), kContainersMax));
    return;
  }
  for (const auto& [container, at] : ItemsOf(containers, PathField(path, key))) {
    CheckItemName(container, at, names, errors);
    CheckContainer(container, volumes, at, errors);
    if (key == "initContainers") CheckInitContainer(container, at, errors);
    CheckRestart(container, at, errors);
  }
}

}  // namespace

const std::vector<std::string>& FieldsForVariables() {
  static const std::vector<std::string> kFields = {"metadata.name",
                                                   "metadata.namespace",
                                                   "metadata.uid",
                                                   "spec.nodeName",
                                                   "spec.serviceAccountName",
                                                   "status.hostIP",
                                                   "status.hostIPs",
                                                   "status.podIP",
                                                   "status.podIPs"};
  return kFields;
}

void CheckTolerations(const json::Array& tolerations,
                      const std::string& path,
                      FieldErrors& errors) {
  for (const auto& [toleration, at] : ItemsOf(tolerations, path)) {
    std::string_view key = TextOf(toleration, "key");
    std::string_view op = TextOf(toleration, "operator");
    std::string_view value = TextOf(toleration, "value");
    std::string_view effect = TextOf(toleration, "effect");
    if (!key.empty()) {
      CheckQualified(key, PathField(at, "key"), errors);
    } else if (op != "Exists") {
      errors.push_back(InvalidText(PathField(at, "operator"), op,
                                   "operator must be Exists when `key` is empty, which means "
                                   "\"match all values and all keys\""));
    }
    if (op.empty() || op == "Equal") {
      CheckText(value, CheckLabelValue, PathField(at, "operator"), errors);
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
    if (MemberOf(toleration, "tolerationSeconds") && effect != "NoExecute") {
      errors.push_back(InvalidText(PathField(at, "effect"), effect,
                                   "effect must be 'NoExecute' when `tolerationSeconds` is set"));
    }
  }
}

namespace {

// A subdomain whose labels may begin with an underscore and have others inside.
std::string CheckSearchDomain(std::string_view domain) {
  std::string plain;
  for (size_t i = 0; i < domain.size(); ++i) {
    if (domain[i] == '_' && (i == 0 || domain[i - 1] == '.')) continue;
    plain += domain[i] == '_' ? '-' : domain[i];
  }
  return CheckDnsSubdomain(plain).empty()
             ? std::string()
             : "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
               "'_', '-' or '.', and must start and end with an alphanumeric character (e.g. "
               "'example.com', regex used for validation is "
               "'_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
}

void CheckMinDomains(const Value& constraint,
                     std::string_view when,
                     const std::string& path,
                     FieldErrors& errors) {
  const Value* domains = MemberOf(constraint, "minDomains");
  if (domains == nullptr) return;
  const std::string at = PathField(path, "minDomains");
  if (json::GetInt(*domains, {}) <= 0) {
    errors.push_back(InvalidError(at, *domains, "must be greater than zero"));
  }
  if (when != "DoNotSchedule") {
    errors.push_back(InvalidError(
        at, *domains,
        StrCat("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ", when)));
  }
}

void CheckSpread(const Value& spec, const std::string& path, FieldErrors& errors) {
  const json::Array& list = json::GetArray(spec, {"topologySpreadConstraints"});
  for (size_t i = 0; i < list.size(); ++i) {
    std::string at = PathIndex(PathField(path, "topologySpreadConstraints"), i);
    if (const int64_t skew = json::GetInt(list[i], {"maxSkew"}); skew <= 0) {
      errors.push_back(
          InvalidError(PathField(at, "maxSkew"), Value(skew), "must be greater than zero"));
    }
    std::string_view key = TextOf(list[i], "topologyKey");
    if (key.empty()) {
      errors.push_back(RequiredError(PathField(at, "topologyKey"), "can not be empty"));
    } else {
      CheckQualified(key, PathField(at, "topologyKey"), errors);
    }
    const std::string_view when = TextOf(list[i], "whenUnsatisfiable");
    if (when != "DoNotSchedule" && when != "ScheduleAnyway") {
      errors.push_back(NotSupportedError(PathField(at, "whenUnsatisfiable"), when,
                                         {"DoNotSchedule", "ScheduleAnyway"}));
    }
    CheckMinDomains(list[i], when, at, errors);
    // The first of two is the one that is told.
    const bool again = std::any_of(
        list.begin() + static_cast<std::ptrdiff_t>(i) + 1, list.end(), [&](const Value& later) {
          return TextOf(later, "topologyKey") == key && TextOf(later, "whenUnsatisfiable") == when;
        });
    if (again) {
      errors.push_back(DuplicateError(PathField(at, "{topologyKey, whenUnsatisfiable}"),
                                      Value(StrCat("{", key, ", ", when, "}"))));
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
  for (const auto& [server, server_at] : ItemsOf(servers, servers_at)) {
    CheckText(TextIn(server), CheckIp, server_at, errors);
  }
  for (const auto& [one, item_at] : ItemsOf(*config, "searches", at)) {
    std::string_view search = TextIn(one);
    if (search == ".") continue;
    if (search.ends_with('.')) search.remove_suffix(1);
    CheckText(search, CheckSearchDomain, item_at, errors);
  }
  for (const auto& [option, option_at] : ItemsOf(*config, "options", at)) {
    if (!TextOf(option, "name").empty()) continue;
    errors.push_back(RequiredError(option_at, "must not be empty"));
  }
}

void CheckHostAliases(const Value& spec, const std::string& path, FieldErrors& errors) {
  for (const auto& [alias, at] : ItemsOf(spec, "hostAliases", path)) {
    CheckText(TextOf(alias, "ip"), CheckIp, PathField(at, "ip"), errors);
    for (const auto& [name, name_at] : ItemsOf(alias, "hostnames", at)) {
      CheckText(TextIn(name), CheckDnsSubdomain, name_at, errors);
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
    CheckText(value, CheckDnsLabel, PathField(path, key), errors);
  }
}

void CheckGates(const Value& spec, const std::string& path, FieldErrors& errors) {
  std::set<std::string> gates;
  for (const auto& [item, at] : ItemsOf(spec, "schedulingGates", path)) {
    std::string name(TextOf(item, "name"));
    if (std::string why = CheckQualifiedName(name); !why.empty()) {
      errors.push_back(InvalidText(at, name, why));
    } else if (!gates.insert(name).second) {
      errors.push_back(DuplicateError(at, Value(name)));
    }
  }
  for (const auto& [gate, gate_at] : ItemsOf(spec, "readinessGates", path)) {
    const std::string_view type = TextOf(gate, "conditionType");
    CheckQualified(type, PathField(gate_at, "conditionType"), errors);
  }
}

// Only a pod's own containers: templates were always let through with it.
void CheckImages(const Value& spec, std::string_view key, FieldErrors& errors) {
  for (const auto& [container, container_at] : ItemsOf(spec, key, "spec")) {
    const std::string_view image = TextOf(container, "image");
    if (Trim(image) == image) continue;
    errors.push_back(InvalidText(PathField(container_at, "image"), image,
                                 "must not have leading or trailing whitespace"));
  }
}

}  // namespace

// In the order in which Kubernetes looks at a spec.
void CheckPodSpec(const Value& spec, const std::string& path, FieldErrors& errors) {
  CheckVolumes(spec, path, errors);
  const PodVolumes volumes(spec);
  if (json::GetArray(spec, {"containers"}).empty()) {
    errors.push_back(RequiredError(PathField(path, "containers")));
  }
  std::set<std::string> names;
  CheckContainers(spec, "containers", names, volumes, path, errors);
  CheckHostPorts(spec, path, errors);
  CheckContainers(spec, "initContainers", names, volumes, path, errors);
  CheckOneOf(spec, "restartPolicy", path, {"Always", "OnFailure", "Never"}, errors);
  CheckOneOf(spec, "dnsPolicy", path,
             {"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"}, errors);
  if (const Value* selector = MemberOf(spec, "nodeSelector")) {
    CheckLabels(*selector, PathField(path, "nodeSelector"), errors);
  }
  CheckPodSecurity(spec, path, errors);
  CheckAffinity(spec, path, errors);
  CheckDns(spec, path, errors);
  CheckGates(spec, path, errors);
  CheckSpread(spec, path, errors);
  CheckWholePod(spec, PathField(path, "resources"), errors);
  CheckPodNames(spec, path, errors);
  CheckTolerations(json::GetArray(spec, {"tolerations"}), PathField(path, "tolerations"), errors);
  CheckHostAliases(spec, path, errors);
  CheckSubdomain(spec, "priorityClassName", path, errors);
  CheckSubdomain(spec, "runtimeClassName", path, errors);
  if (const Value* overhead = MemberOf(spec, "overhead")) {
    CheckResources(json::Object{{"limits", *overhead}}, PathField(path, "overhead"), errors);
  }
  CheckOneOf(spec, "preemptionPolicy", path, {"Never", "PreemptLowerPriority"}, errors);
}

void CheckEphemeralContainers(const Value& spec, const Value& old, FieldErrors& errors) {
  const std::string path = "spec.ephemeralContainers";
  std::set<std::string> names;
  for (std::string_view list : {"containers", "initContainers"}) {
    for (const Value& container : json::GetArray(spec, {list})) {
      names.emplace(TextOf(container, "name"));
    }
  }
  const std::set<std::string> targets = names;
  const PodVolumes volumes(spec);
  std::map<std::string, const Value*> now;
  for (const auto& [container, at] : ItemsOf(json::GetArray(spec, {"ephemeralContainers"}), path)) {
    const std::string target(TextOf(container, "targetContainerName"));
    if (!target.empty() && !targets.contains(target)) {
      errors.push_back(NotFoundError(PathField(at, "targetContainerName"), target));
    }
    if (TextOf(container, "name").empty()) {
      errors.push_back(RequiredError(at, "ephemeralContainer requires a name"));
      continue;
    }
    now.emplace(TextOf(container, "name"), &container);
    CheckItemName(container, at, names, errors);
    CheckContainer(container, volumes, at, errors);
    for (std::string_view key :
         {"ports", "resources", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle",
          "volumeDevices", "restartPolicy", "restartPolicyRules"}) {
      const Value* value = MemberOf(container, key);
      const bool empty = value == nullptr || (value->is_object() && value->get_object().empty()) ||
                         (value->is_array() && value->get_array().empty());
      if (empty) continue;
      errors.push_back(
          ForbiddenError(PathField(at, key), "cannot be set for an Ephemeral Container"));
    }
  }
  for (const Value& before : json::GetArray(old, {"ephemeralContainers"})) {
    const std::string_view name = TextOf(before, "name");
    const auto found = now.find(std::string(name));
    if (found == now.end()) {
      errors.push_back(ForbiddenError(
          path, StrCat("existing ephemeral containers ", Quote(name), " may not be removed\n")));
    } else if (!json::Equal(*found->second, before)) {
      errors.push_back(ForbiddenError(
          path, StrCat("existing ephemeral containers ", Quote(name), " may not be changed\n")));
    }
  }
}

void CheckPod(const Value& pod, FieldErrors& errors) {
  const Value& spec = SpecOf(pod);
  CheckSecurityAnnotations(pod, errors);
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
