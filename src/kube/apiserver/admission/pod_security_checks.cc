#include "kube/apiserver/admission/pod_security_checks.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::apiserver {
namespace {

using Violation = std::optional<PodSecurityViolation>;

std::string Plural(std::string_view one, size_t count) {
  return count == 1 ? std::string(one) : StrCat(one, "s");
}

template <class Texts>
std::string Quoted(const Texts& texts) {
  std::string out;
  for (const std::string& text : texts) out += StrCat(out.empty() ? "" : ", ", Quote(text));
  return out;
}

std::string And(const std::vector<std::string>& parts) { return Join(parts, " and "); }

struct Subject {
  const json::Value& pod;
  const json::Value& spec;
  const AllowsVolume& allows;

  const json::Value* Context() const { return json::Find(spec, {"securityContext"}); }
};

// A text of a container's, or "": the schema refuses values that are not text.
std::string NameOf(const json::Value& container) {
  return std::string(json::GetString(container, {"name"}));
}

const json::Value* ContextOf(const json::Value& container) {
  return json::Find(container, {"securityContext"});
}

template <class Visit>
void ForEachContainer(const Subject& subject, const Visit& visit) {
  for (const char* list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const json::Value& container : json::GetArray(subject.spec, {list})) visit(container);
  }
}

// Which parts of a pod set something that they must not.
struct Setters {
  bool pod = false;
  std::vector<std::string> containers;
  std::set<std::string> values;

  bool any() const { return pod || !containers.empty(); }
  std::string Containers() const {
    return StrCat(Plural("container", containers.size()), " ", Quoted(containers));
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    if (pod) names.emplace_back("pod");
    if (!containers.empty()) names.push_back(Containers());
    return names;
  }
};

// `bad` says whether a security context is one; it may add to `values`.
template <class Bad>
Setters SettersOf(const Subject& subject, const Bad& bad) {
  Setters setters;
  const json::Value* context = subject.Context();
  setters.pod = context != nullptr && bad(*context, setters.values);
  ForEachContainer(subject, [&](const json::Value& container) {
    const json::Value* own = ContextOf(container);
    if (own != nullptr && bad(*own, setters.values))
      setters.containers.push_back(NameOf(container));
  });
  return setters;
}

template <class Bad>
Setters ContainersOf(const Subject& subject, const Bad& bad) {
  Setters setters;
  ForEachContainer(subject, [&](const json::Value& container) {
    if (bad(container, setters.values)) setters.containers.push_back(NameOf(container));
  });
  return setters;
}

bool IsTrue(const json::Value& object, json::Path path) { return json::GetBool(object, path); }

// A null stands for a field that is not there.
bool Has(const json::Value& object, json::Path path) {
  const json::Value* found = json::Find(object, path);
  return found != nullptr && !found->is_null();
}

Violation HostNamespaces(const Subject& subject) {
  std::vector<std::string> set;
  // hostUsers is Swell's addition: here a pod has a user namespace unless it says otherwise.
  for (const char* field : {"hostNetwork", "hostPID", "hostIPC", "hostUsers"}) {
    if (IsTrue(subject.spec, {field})) set.push_back(StrCat(field, "=true"));
  }
  if (set.empty()) return std::nullopt;
  return PodSecurityViolation{"host namespaces", Join(set, ", ")};
}

Violation HostPathVolumes(const Subject& subject) {
  std::vector<std::string> names;
  for (const json::Value& volume : json::GetArray(subject.spec, {"volumes"})) {
    if (!Has(volume, {"hostPath"})) continue;
    if (!subject.allows || !subject.allows(volume)) names.push_back(NameOf(volume));
  }
  if (names.empty()) return std::nullopt;
  return PodSecurityViolation{"hostPath volumes",
                              StrCat(Plural("volume", names.size()), " ", Quoted(names))};
}

Violation HostPorts(const Subject& subject) {
  Setters bad = ContainersOf(subject, [](const json::Value& container, auto& ports) {
    bool any = false;
    for (const json::Value& port : json::GetArray(container, {"ports"})) {
      const int64_t number = json::GetInt(port, {"hostPort"});
      if (number == 0) continue;
      ports.insert(std::to_string(number));
      any = true;
    }
    return any;
  });
  if (!bad.any()) return std::nullopt;
  return PodSecurityViolation{
      "hostPort", StrCat(bad.Containers(), bad.containers.size() == 1 ? " uses " : " use ",
                         Plural("hostPort", bad.values.size()), " ",
                         Join({bad.values.begin(), bad.values.end()}, ", "))};
}

Violation Privileged(const Subject& subject) {
  const Setters bad = ContainersOf(subject, [](const json::Value& container, auto&) {
    return IsTrue(container, {"securityContext", "privileged"});
  });
  if (!bad.any()) return std::nullopt;
  return PodSecurityViolation{"privileged", StrCat(bad.Containers(),
                                                   " must not set "
                                                   "securityContext.privileged=true")};
}

// A probe runs on the node: with a host of its own it would reach what the pod itself cannot.
Violation ProbeHosts(const Subject& subject) {
  const Setters bad = ContainersOf(subject, [](const json::Value& container, auto& hosts) {
    bool any = false;
    for (const auto& [parent, field] :
         {std::pair{"", "livenessProbe"}, std::pair{"", "readinessProbe"},
          std::pair{"", "startupProbe"}, std::pair{"lifecycle", "postStart"},
          std::pair{"lifecycle", "preStop"}}) {
      for (const char* how : {"httpGet", "tcpSocket"}) {
        const std::string_view host =
            *parent == '\0' ? json::GetString(container, {field, how, "host"})
                            : json::GetString(container, {parent, field, how, "host"});
        if (host.empty()) continue;
        hosts.emplace(host);
        any = true;
      }
    }
    return any;
  });
  if (!bad.any()) return std::nullopt;
  return PodSecurityViolation{"probe or lifecycle host",
                              StrCat(bad.Containers(), " must not set a probe's or hook's host")};
}

Violation ProcMount(const Subject& subject) {
  const Setters bad = ContainersOf(subject, [](const json::Value& container, auto& values) {
    const std::string_view mount = json::GetString(container, {"securityContext", "procMount"});
    if (mount.empty() || mount == "Default") return false;
    values.emplace(mount);
    return true;
  });
  if (!bad.any()) return std::nullopt;
  return PodSecurityViolation{
      "procMount",
      StrCat(bad.Containers(), " must not set securityContext.procMount to ", Quoted(bad.values))};
}

Violation WindowsHostProcess(const Subject& subject) {
  const Setters bad = SettersOf(subject, [](const json::Value& context, auto&) {
    return IsTrue(context, {"windowsOptions", "hostProcess"});
  });
  if (!bad.any()) return std::nullopt;
  return PodSecurityViolation{
      "hostProcess",
      StrCat(And(bad.Names()), " must not set securityContext.windowsOptions.hostProcess=true")};
}

Violation AppArmor(const Subject& subject) {
  constexpr std::string_view kPrefix = "container.apparmor.security.beta.kubernetes.io/";
  Setters bad = SettersOf(subject, [](const json::Value& context, auto& values) {
    if (!Has(context, {"appArmorProfile"})) return false;
    const std::string_view type = json::GetString(context, {"appArmorProfile", "type"});
    if (type == "RuntimeDefault" || type == "Localhost") return false;
    values.emplace(type);
    return true;
  });
  std::set<std::string> annotations;
  for (const auto& [key, value] : api::Annotations(subject.pod)) {
    const std::string_view name(key.data(), key.size());
    if (!name.starts_with(kPrefix) || !value.is_string()) continue;
    const std::string_view profile = json::View(value.get_string());
    if (profile.empty() || profile == "runtime/default" || profile.starts_with("localhost/")) {
      continue;
    }
    annotations.insert(StrCat(name, "=", Quote(profile)));
  }
  std::vector<std::string> names = bad.Names();
  if (!annotations.empty()) names.push_back(Plural("annotation", annotations.size()));
  if (names.empty()) return std::nullopt;
  std::vector<std::string> values(bad.values.begin(), bad.values.end());
  values.insert(values.end(), annotations.begin(), annotations.end());
  return PodSecurityViolation{
      Plural("forbidden AppArmor profile", values.size()),
      StrCat(And(names), " must not set AppArmor profile type to ", Quoted(values))};
}

Violation SeLinux(const Subject& subject, int minor) {
  constexpr int kEngineSince = 31;
  bool user = false;
  bool role = false;
  const Setters bad = SettersOf(subject, [&](const json::Value& context, auto& types) {
    const std::string_view type = json::GetString(context, {"seLinuxOptions", "type"});
    const bool sets_user = !json::GetString(context, {"seLinuxOptions", "user"}).empty();
    const bool sets_role = !json::GetString(context, {"seLinuxOptions", "role"}).empty();
    const bool known = type.empty() || type == "container_t" || type == "container_init_t" ||
                       type == "container_kvm_t" ||
                       (type == "container_engine_t" && minor >= kEngineSince);
    if (!known) types.emplace(type);
    user |= sets_user;
    role |= sets_role;
    return !known || sets_user || sets_role;
  });
  if (!bad.any()) return std::nullopt;
  std::vector<std::string> data;
  if (!bad.values.empty()) {
    data.push_back(StrCat(Plural("type", bad.values.size()), " ", Quoted(bad.values)));
  }
  if (user) data.emplace_back("user may not be set");
  if (role) data.emplace_back("role may not be set");
  return PodSecurityViolation{
      "seLinuxOptions", StrCat(And(bad.Names()), " set forbidden securityContext.seLinuxOptions: ",
                               Join(data, "; "))};
}

Violation Sysctls(const Subject& subject, int minor) {
  struct Safe {
    std::string_view name;
    int since;
  };
  static constexpr Safe kSafe[] = {{"kernel.shm_rmid_forced", 0},
                                   {"net.ipv4.ip_local_port_range", 0},
                                   {"net.ipv4.tcp_syncookies", 0},
                                   {"net.ipv4.ping_group_range", 0},
                                   {"net.ipv4.ip_unprivileged_port_start", 0},
                                   {"net.ipv4.ip_local_reserved_ports", 27},
                                   {"net.ipv4.tcp_keepalive_time", 29},
                                   {"net.ipv4.tcp_fin_timeout", 29},
                                   {"net.ipv4.tcp_keepalive_intvl", 29},
                                   {"net.ipv4.tcp_keepalive_probes", 29},
                                   {"net.ipv4.tcp_rmem", 32},
                                   {"net.ipv4.tcp_wmem", 32},
                                   {"net.ipv4.tcp_slow_start_after_idle", 37},
                                   {"net.ipv4.tcp_notsent_lowat", 37}};
  std::vector<std::string> forbidden;
  for (const json::Value& sysctl : json::GetArray(subject.spec, {"securityContext", "sysctls"})) {
    const std::string_view name = json::GetString(sysctl, {"name"});
    const bool safe = std::any_of(std::begin(kSafe), std::end(kSafe), [&](const Safe& one) {
      return one.name == name && one.since <= minor;
    });
    if (!safe) forbidden.emplace_back(name);
  }
  if (forbidden.empty()) return std::nullopt;
  return PodSecurityViolation{"forbidden sysctls", Join(forbidden, ", ")};
}

constexpr std::string_view kDefaultCapabilities[] = {
    "AUDIT_WRITE",      "CHOWN",   "DAC_OVERRIDE", "FOWNER",  "FSETID", "KILL",      "MKNOD",
    "NET_BIND_SERVICE", "SETFCAP", "SETGID",       "SETPCAP", "SETUID", "SYS_CHROOT"};

// Containers that add a capability which `allowed` does not have.
template <class Allowed>
Setters Adding(const Subject& subject, const Allowed& allowed) {
  return ContainersOf(subject, [&](const json::Value& container, auto& values) {
    bool any = false;
    for (const json::Value& one :
         json::GetArray(container, {"securityContext", "capabilities", "add"})) {
      if (!one.is_string() || allowed(json::View(one.get_string()))) continue;
      values.emplace(json::View(one.get_string()));
      any = true;
    }
    return any;
  });
}

std::string AddingText(const Setters& adding) {
  return StrCat(adding.Containers(), " must not include ", Quoted(adding.values),
                " in securityContext.capabilities.add");
}

Violation CapabilitiesBaseline(const Subject& subject) {
  const Setters bad = Adding(subject, [](std::string_view name) {
    return std::find(std::begin(kDefaultCapabilities), std::end(kDefaultCapabilities), name) !=
           std::end(kDefaultCapabilities);
  });
  if (!bad.any()) return std::nullopt;
  return PodSecurityViolation{"non-default capabilities", AddingText(bad)};
}

Violation CapabilitiesRestricted(const Subject& subject) {
  const Setters keeping = ContainersOf(subject, [](const json::Value& container, auto&) {
    const json::Array& drop =
        json::GetArray(container, {"securityContext", "capabilities", "drop"});
    return std::find(drop.begin(), drop.end(), json::Value("ALL")) == drop.end();
  });
  const Setters adding =
      Adding(subject, [](std::string_view name) { return name == "NET_BIND_SERVICE"; });
  std::vector<std::string> details;
  if (keeping.any()) {
    details.push_back(
        StrCat(keeping.Containers(), R"( must set securityContext.capabilities.drop=["ALL"])"));
  }
  if (adding.any()) details.push_back(AddingText(adding));
  if (details.empty()) return std::nullopt;
  return PodSecurityViolation{"unrestricted capabilities", Join(details, "; ")};
}

bool IsWrongSeccomp(const json::Value& context, std::set<std::string>& values) {
  if (!Has(context, {"seccompProfile"})) return false;
  const std::string_view type = json::GetString(context, {"seccompProfile", "type"});
  if (type == "RuntimeDefault" || type == "Localhost") return false;
  values.emplace(type);
  return true;
}

Violation SeccompBaseline(const Subject& subject) {
  const Setters bad = SettersOf(subject, IsWrongSeccomp);
  if (!bad.any()) return std::nullopt;
  return PodSecurityViolation{
      "seccompProfile",
      StrCat(And(bad.Names()), " must not set securityContext.seccompProfile.type to ",
             Quoted(bad.values))};
}

// Containers that neither set `field` nor have it from the pod.
Setters Lacking(const Subject& subject, std::string_view field, bool pod_sets) {
  return ContainersOf(subject, [&](const json::Value& container, auto&) {
    return !pod_sets && !Has(container, {"securityContext", field});
  });
}

Violation SeccompRestricted(const Subject& subject) {
  if (Violation bad = SeccompBaseline(subject)) return bad;
  const bool pod = Has(subject.spec, {"securityContext", "seccompProfile"});
  const Setters lacking = Lacking(subject, "seccompProfile", pod);
  if (!lacking.any()) return std::nullopt;
  return PodSecurityViolation{"seccompProfile",
                              StrCat("pod or ", lacking.Containers(),
                                     " must set securityContext.seccompProfile.type to "
                                     "\"RuntimeDefault\" or \"Localhost\"")};
}

Violation AllowPrivilegeEscalation(const Subject& subject) {
  const Setters bad = ContainersOf(subject, [](const json::Value& container, auto&) {
    return json::GetBool(container, {"securityContext", "allowPrivilegeEscalation"}, true);
  });
  if (!bad.any()) return std::nullopt;
  return PodSecurityViolation{
      "allowPrivilegeEscalation != false",
      StrCat(bad.Containers(), " must set securityContext.allowPrivilegeEscalation=false")};
}

Violation RunAsNonRoot(const Subject& subject) {
  const Setters bad = SettersOf(subject, [](const json::Value& context, auto&) {
    return !json::GetBool(context, {"runAsNonRoot"}, true);
  });
  constexpr const char* kReason = "runAsNonRoot != true";
  if (bad.any()) {
    return PodSecurityViolation{
        kReason, StrCat(And(bad.Names()), " must not set securityContext.runAsNonRoot=false")};
  }
  const bool pod = IsTrue(subject.spec, {"securityContext", "runAsNonRoot"});
  const Setters lacking = Lacking(subject, "runAsNonRoot", pod);
  if (!lacking.any()) return std::nullopt;
  return PodSecurityViolation{kReason, StrCat("pod or ", lacking.Containers(),
                                              " must set securityContext.runAsNonRoot=true")};
}

Violation RunAsUser(const Subject& subject) {
  const Setters bad = SettersOf(subject, [](const json::Value& context, auto&) {
    return json::GetInt(context, {"runAsUser"}, 1) == 0;
  });
  if (!bad.any()) return std::nullopt;
  return PodSecurityViolation{"runAsUser=0", StrCat(And(bad.Names()), " must not set runAsUser=0")};
}

// Empty: the volume is of a type that everybody may use.
std::string RestrictedTypeOf(const json::Value& volume) {
  static constexpr std::string_view kAllowed[] = {"configMap", "csi",       "downwardAPI",
                                                  "emptyDir",  "ephemeral", "persistentVolumeClaim",
                                                  "projected", "secret"};
  if (Has(volume, {"hostPath"})) return "hostPath";
  bool any = false;
  for (std::string_view type : kAllowed) any |= Has(volume, {type});
  for (const auto& [key, value] : json::GetObject(volume, {})) {
    const std::string_view type(key.data(), key.size());
    if (type == "name" || value.is_null()) continue;
    if (std::find(std::begin(kAllowed), std::end(kAllowed), type) != std::end(kAllowed)) continue;
    return std::string(type);
  }
  return any ? "" : "unknown";
}

Violation RestrictedVolumes(const Subject& subject) {
  std::vector<std::string> names;
  std::set<std::string> types;
  for (const json::Value& volume : json::GetArray(subject.spec, {"volumes"})) {
    const std::string type = RestrictedTypeOf(volume);
    if (type.empty()) continue;
    if (type == "hostPath" && subject.allows && subject.allows(volume)) continue;
    names.push_back(NameOf(volume));
    types.insert(type);
  }
  if (names.empty()) return std::nullopt;
  return PodSecurityViolation{
      "restricted volume types",
      StrCat(Plural("volume", names.size()), " ", Quoted(names),
             names.size() == 1 ? " uses " : " use ", Plural("restricted volume type", types.size()),
             " ", Quoted(types))};
}

// The checks of a level, in the order in which Kubernetes reports them. Where `restricted` has a
// stricter form of a check of baseline, that one alone is reported.
std::vector<Violation> Baseline(const Subject& subject, int minor, bool restricted) {
  std::vector<Violation> all;
  all.push_back(AppArmor(subject));
  if (!restricted || minor < 22) all.push_back(CapabilitiesBaseline(subject));
  all.push_back(HostNamespaces(subject));
  if (!restricted) all.push_back(HostPathVolumes(subject));
  all.push_back(HostPorts(subject));
  all.push_back(Privileged(subject));
  if (minor >= 34) all.push_back(ProbeHosts(subject));
  all.push_back(ProcMount(subject));
  all.push_back(SeLinux(subject, minor));
  if (!restricted || minor < 19) all.push_back(SeccompBaseline(subject));
  all.push_back(Sysctls(subject, minor));
  all.push_back(WindowsHostProcess(subject));
  return all;
}

std::vector<Violation> Restricted(const Subject& subject, int minor) {
  std::vector<Violation> all;
  if (minor >= 8) all.push_back(AllowPrivilegeEscalation(subject));
  if (minor >= 22) all.push_back(CapabilitiesRestricted(subject));
  all.push_back(RestrictedVolumes(subject));
  all.push_back(RunAsNonRoot(subject));
  if (minor >= 23) all.push_back(RunAsUser(subject));
  if (minor >= 19) all.push_back(SeccompRestricted(subject));
  return all;
}

}  // namespace

std::optional<PodSecurityLevel> ParsePodSecurityLevel(std::string_view text) {
  for (PodSecurityLevel level : {PodSecurityLevel::kPrivileged, PodSecurityLevel::kBaseline,
                                 PodSecurityLevel::kRestricted}) {
    if (text == NameOf(level)) return level;
  }
  return std::nullopt;
}

std::string_view NameOf(PodSecurityLevel level) {
  if (level == PodSecurityLevel::kBaseline) return "baseline";
  return level == PodSecurityLevel::kRestricted ? "restricted" : "privileged";
}

std::string PodSecurityPolicy::ToString() const {
  const std::string version = minor == kLatest ? "latest" : StrCat("v1.", minor);
  return StrCat(NameOf(level), ":", version);
}

std::optional<int> ParsePodSecurityVersion(std::string_view text) {
  constexpr int kMinorMax = 10'000;
  if (text == "latest") return PodSecurityPolicy::kLatest;
  if (!text.starts_with("v1.")) return std::nullopt;
  const auto minor = ParseInt(text.substr(3));
  if (!minor || *minor < 0 || *minor > kMinorMax) return std::nullopt;
  return static_cast<int>(*minor);
}

std::vector<PodSecurityViolation> CheckPodSecurity(const PodSecurityPolicy& policy,
                                                   const json::Value& pod,
                                                   const AllowsVolume& allows) {
  std::vector<PodSecurityViolation> violations;
  if (policy.level == PodSecurityLevel::kPrivileged) return violations;
  const Subject subject{pod, api::Spec(pod), allows};
  const bool restricted = policy.level == PodSecurityLevel::kRestricted;
  auto add = [&violations](std::vector<Violation> found) {
    for (Violation& one : found) {
      if (one) violations.push_back(std::move(*one));
    }
  };
  add(Baseline(subject, policy.minor, restricted));
  if (restricted) add(Restricted(subject, policy.minor));
  return violations;
}

std::string Describe(const std::vector<PodSecurityViolation>& violations) {
  std::string text;
  for (const PodSecurityViolation& one : violations) {
    text += StrCat(text.empty() ? "" : ", ", one.reason,
                   one.detail.empty() ? "" : StrCat(" (", one.detail, ")"));
  }
  return text;
}

}  // namespace swell::apiserver
