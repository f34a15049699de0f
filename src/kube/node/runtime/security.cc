#include "kube/node/runtime/security.h"

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/user.h"

namespace swell::node {
namespace {

constexpr std::array<std::string_view, kCapabilities> kNames = {"CHOWN",
                                                                "DAC_OVERRIDE",
                                                                "DAC_READ_SEARCH",
                                                                "FOWNER",
                                                                "FSETID",
                                                                "KILL",
                                                                "SETGID",
                                                                "SETUID",
                                                                "SETPCAP",
                                                                "LINUX_IMMUTABLE",
                                                                "NET_BIND_SERVICE",
                                                                "NET_BROADCAST",
                                                                "NET_ADMIN",
                                                                "NET_RAW",
                                                                "IPC_LOCK",
                                                                "IPC_OWNER",
                                                                "SYS_MODULE",
                                                                "SYS_RAWIO",
                                                                "SYS_CHROOT",
                                                                "SYS_PTRACE",
                                                                "SYS_PACCT",
                                                                "SYS_ADMIN",
                                                                "SYS_BOOT",
                                                                "SYS_NICE",
                                                                "SYS_RESOURCE",
                                                                "SYS_TIME",
                                                                "SYS_TTY_CONFIG",
                                                                "MKNOD",
                                                                "LEASE",
                                                                "AUDIT_WRITE",
                                                                "AUDIT_CONTROL",
                                                                "SETFCAP",
                                                                "MAC_OVERRIDE",
                                                                "MAC_ADMIN",
                                                                "SYSLOG",
                                                                "WAKE_ALARM",
                                                                "BLOCK_SUSPEND",
                                                                "AUDIT_READ",
                                                                "PERFMON",
                                                                "BPF",
                                                                "CHECKPOINT_RESTORE"};

constexpr std::string_view kDefaults[] = {
    "CHOWN",   "DAC_OVERRIDE", "FSETID",           "FOWNER",     "NET_RAW", "SETGID",     "SETUID",
    "SETFCAP", "SETPCAP",      "NET_BIND_SERVICE", "SYS_CHROOT", "KILL",    "AUDIT_WRITE"};

// Settings of the kernel that a pod's namespaces keep apart: Kubernetes' list of safe ones.
constexpr std::string_view kSafeSysctls[] = {"kernel.shm_rmid_forced",
                                             "net.ipv4.ip_local_port_range",
                                             "net.ipv4.ip_local_reserved_ports",
                                             "net.ipv4.ip_unprivileged_port_start",
                                             "net.ipv4.ping_group_range",
                                             "net.ipv4.tcp_fin_timeout",
                                             "net.ipv4.tcp_keepalive_intvl",
                                             "net.ipv4.tcp_keepalive_probes",
                                             "net.ipv4.tcp_keepalive_time",
                                             "net.ipv4.tcp_notsent_lowat",
                                             "net.ipv4.tcp_rmem",
                                             "net.ipv4.tcp_slow_start_after_idle",
                                             "net.ipv4.tcp_syncookies",
                                             "net.ipv4.tcp_wmem"};

constexpr std::string_view kLists[] = {"initContainers", "containers", "ephemeralContainers"};

CapabilitySet Bit(int number) { return CapabilitySet{1} << number; }

// The container's own field, else the pod's, else nullptr.
const json::Value* FieldOf(const json::Value& pod,
                           const json::Value& container,
                           std::string_view name) {
  const json::Value* own = json::Find(container, {"securityContext", name});
  return own != nullptr ? own : json::Find(pod, {"spec", "securityContext", name});
}

Status Refuse(const json::Value& container, std::string_view field, std::string_view why) {
  const std::string_view name = json::GetString(container, {"name"});
  return Status(Code::kForbidden,
                StrCat("container ", Quote(name), ": securityContext.", field, ": ", why));
}

Result<CapabilitySet> ReadList(const json::Value& container, std::string_view list) {
  CapabilitySet set = 0;
  const json::Array& items = json::GetArray(container, {"securityContext", "capabilities", list});
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string_view text =
        items[i].is_string() ? json::View(items[i].get_string()) : std::string_view();
    if (ToUpper(text) == "ALL") {
      set = kAllCapabilities;
      continue;
    }
    const std::optional<int> number = CapabilityNumber(text);
    if (!number) {
      return Refuse(container, StrCat("capabilities.", list, "[", i, "]"),
                    StrCat(Quote(text), " is not a capability of Linux; names are like NET_ADMIN"));
    }
    set |= Bit(*number);
  }
  return set;
}

Result<SecurityProfile> ReadProfile(const json::Value& pod,
                                    const json::Value& container,
                                    std::string_view field) {
  SecurityProfile profile;
  const json::Value* value = FieldOf(pod, container, field);
  if (value == nullptr || !value->is_object()) return profile;
  profile.asked_for = true;
  const std::string_view type = json::GetString(*value, {"type"});
  if (type == "Unconfined") {
    profile.kind = SecurityProfile::Kind::kUnconfined;
  } else if (type == "Localhost") {
    profile.kind = SecurityProfile::Kind::kLocalhost;
    profile.name = json::GetString(*value, {"localhostProfile"});
    if (profile.name.empty()) {
      return Refuse(container, StrCat(field, ".localhostProfile"), "Localhost needs a profile");
    }
  } else if (type != "RuntimeDefault") {
    return Refuse(container, StrCat(field, ".type"),
                  StrCat(Quote(type), " must be RuntimeDefault, Localhost or Unconfined"));
  }
  return profile;
}

// Whether an object says anything but empty strings.
bool SaysSomething(const json::Value* value) {
  if (value == nullptr || !value->is_object()) return false;
  const json::Object& fields = value->get_object();
  return std::any_of(fields.begin(), fields.end(), [](const auto& field) {
    return !field.value().is_string() || !field.value().get_string().empty();
  });
}

// The level of everything on a machine without SELinux: it asks for nothing.
bool IsDefaultLevel(const json::Value* options) {
  return options != nullptr && options->is_object() && options->get_object().size() == 1 &&
         json::GetString(*options, {"level"}) == "s0";
}

Status CheckImpossible(const json::Value& pod, const json::Value& container) {
  for (std::string_view field : {"seLinuxOptions", "windowsOptions"}) {
    const json::Value* asked = FieldOf(pod, container, field);
    if (SaysSomething(asked) && !IsDefaultLevel(asked)) {
      return Refuse(container, field, "this node has none; leave the field out");
    }
  }
  return Status::Ok();
}

}  // namespace

std::optional<int> CapabilityNumber(std::string_view name) {
  std::string upper = ToUpper(name);
  if (upper.starts_with("CAP_")) upper.erase(0, 4);
  const auto found = std::find(kNames.begin(), kNames.end(), upper);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<int>(found - kNames.begin());
}

std::string_view CapabilityName(int number) {
  if (number < 0 || number >= kCapabilities) return {};
  return kNames[static_cast<size_t>(number)];
}

CapabilitySet DefaultCapabilities() {
  static const CapabilitySet kSet = [] {
    CapabilitySet set = 0;
    for (std::string_view name : kDefaults) set |= Bit(CapabilityNumber(name).value_or(0));
    return set;
  }();
  return kSet;
}

Result<ContainerSecurity> ReadContainerSecurity(const json::Value& pod,
                                                const json::Value& container) {
  ContainerSecurity security;
  SWELL_RETURN_IF_ERROR(CheckImpossible(pod, container));
  security.privileged = json::GetBool(container, {"securityContext", "privileged"});
  SWELL_ASSIGN_OR_RETURN(const CapabilitySet add, ReadList(container, "add"));
  SWELL_ASSIGN_OR_RETURN(const CapabilitySet drop, ReadList(container, "drop"));
  // As containerd does: ALL in one list leaves the exceptions of the other.
  if (add == kAllCapabilities) {
    security.capabilities = drop == kAllCapabilities ? 0 : add & ~drop;
  } else if (drop == kAllCapabilities) {
    security.capabilities = add;
  } else {
    security.capabilities = (DefaultCapabilities() | add) & ~drop;
  }
  security.no_new_privileges =
      !json::GetBool(container, {"securityContext", "allowPrivilegeEscalation"}, true);
  if (security.privileged) {
    if (security.no_new_privileges) {
      return Refuse(container, "allowPrivilegeEscalation",
                    "false and privileged: true exclude each other");
    }
    security.capabilities = kAllCapabilities;
  }
  const std::string_view proc = json::GetString(container, {"securityContext", "procMount"});
  if (!proc.empty() && proc != "Default" && proc != "Unmasked") {
    return Refuse(container, "procMount", StrCat(Quote(proc), " must be Default or Unmasked"));
  }
  security.unmasked_proc = proc == "Unmasked";
  SWELL_ASSIGN_OR_RETURN(security.seccomp, ReadProfile(pod, container, "seccompProfile"));
  SWELL_ASSIGN_OR_RETURN(security.app_armor, ReadProfile(pod, container, "appArmorProfile"));
  if (security.privileged) security.seccomp.kind = SecurityProfile::Kind::kUnconfined;
  return security;
}

namespace {

Status ReadSysctls(const json::Value& pod, PodSecurity& security) {
  const json::Array& items = json::GetArray(pod, {"spec", "securityContext", "sysctls"});
  for (size_t i = 0; i < items.size(); ++i) {
    std::string name(json::GetString(items[i], {"name"}));
    std::replace(name.begin(), name.end(), '/', '.');
    const std::string at = StrCat("securityContext.sysctls[", i, "].name: ", Quote(name));
    if (std::find(std::begin(kSafeSysctls), std::end(kSafeSysctls), name) ==
        std::end(kSafeSysctls)) {
      return Status(Code::kForbidden,
                    StrCat(at, " is not one of the settings that pods may change: ",
                           Join({std::begin(kSafeSysctls), std::end(kSafeSysctls)}, ", ")));
    }
    const bool host = name.starts_with("net.") ? json::GetBool(pod, {"spec", "hostNetwork"})
                                               : json::GetBool(pod, {"spec", "hostIPC"});
    if (host) {
      return Status(Code::kForbidden, StrCat(at,
                                             " would change the node's own setting, since the "
                                             "pod shares that namespace with the node"));
    }
    security.sysctls.emplace_back(std::move(name),
                                  std::string(json::GetString(items[i], {"value"})));
  }
  return Status::Ok();
}

void NoteId(const json::Value* id, PodSecurity& security) {
  if (id == nullptr || !id->is_int64()) return;
  security.highest_id = std::max(security.highest_id, id->get_int64());
}

}  // namespace

Result<PodSecurity> ReadPodSecurity(const json::Value& pod) {
  PodSecurity security;
  security.host_pid = json::GetBool(pod, {"spec", "hostPID"});
  security.host_ipc = json::GetBool(pod, {"spec", "hostIPC"});
  if (const json::Value* users = json::Find(pod, {"spec", "hostUsers"});
      users != nullptr && users->is_bool()) {
    security.host_users = users->get_bool();
  }
  SWELL_RETURN_IF_ERROR(ReadSysctls(pod, security));
  for (std::string_view field : {"runAsUser", "runAsGroup", "fsGroup"}) {
    NoteId(json::Find(pod, {"spec", "securityContext", field}), security);
  }
  // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): an empty list begins where it ends
  for (const json::Value& group :
       json::GetArray(pod, {"spec", "securityContext", "supplementalGroups"})) {
    NoteId(&group, security);
  }
  security.ids_chosen = api::Annotation(pod, api::kIdsChosen) == "true";
  security.never_root = true;
  for (std::string_view list : kLists) {
    for (const json::Value& container : json::GetArray(pod, {"spec", list})) {
      const json::Value* user = FieldOf(pod, container, "runAsUser");
      if (user == nullptr || !user->is_int64() || user->get_int64() == 0) {
        security.never_root = false;
      }
      if (json::GetBool(container, {"securityContext", "privileged"})) security.privileged = true;
      for (std::string_view field : {"runAsUser", "runAsGroup"}) {
        NoteId(json::Find(container, {"securityContext", field}), security);
      }
    }
  }
  return security;
}

Status CheckPodSecurity(const json::Value& pod) {
  SWELL_RETURN_IF_ERROR(ReadPodSecurity(pod).status());
  if (json::GetBool(pod, {"spec", "shareProcessNamespace"})) {
    return Status(Code::kForbidden,
                  "shareProcessNamespace: true: each container has processes of its own here; "
                  "leave the field out, and look into a container with kubectl debug --target");
  }
  for (std::string_view list : kLists) {
    for (const json::Value& container : json::GetArray(pod, {"spec", list})) {
      SWELL_RETURN_IF_ERROR(ReadContainerSecurity(pod, container).status());
    }
  }
  return Status::Ok();
}

std::optional<int64_t> OnlyUser(const json::Value& pod) {
  std::optional<int64_t> user;
  for (std::string_view list : {"initContainers", "containers"}) {
    for (const json::Value& container : json::GetArray(pod, {"spec", list})) {
      const json::Value* own = FieldOf(pod, container, "runAsUser");
      if (own == nullptr || !own->is_int64()) return std::nullopt;
      if (user && *user != own->get_int64()) return std::nullopt;
      user = own->get_int64();
    }
  }
  return user;
}

bool NamesUsers(const json::Value& pod) {
  return std::any_of(std::begin(kLists), std::end(kLists), [&pod](std::string_view list) {
    const json::Array& containers = json::GetArray(pod, {"spec", list});
    return std::any_of(containers.begin(), containers.end(), [&pod](const auto& container) {
      return FieldOf(pod, container, "runAsUser") != nullptr;
    });
  });
}

}  // namespace swell::node
