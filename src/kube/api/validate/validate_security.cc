// Security contexts of pods and containers, and the annotations that came before their fields.
#include <set>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/validate/validate_rules.h"

namespace swell::api {
using json::Value;

void CheckId(const Value& context,
             std::string_view key,
             const std::string& at,
             FieldErrors& errors) {
  constexpr int64_t kMaxId = 2147483647;
  const Value* id = MemberOf(context, key);
  const int64_t value = json::GetInt(context, {key});
  if (id == nullptr || (value >= 0 && value <= kMaxId)) return;
  errors.push_back(
      InvalidError(PathField(at, key), *id, "must be between 0 and 2147483647, inclusive"));
}

namespace {

// Groups of lower case letters, digits, '-' and '_' with dots between them.
bool IsSysctl(std::string_view name) {
  constexpr size_t kMaxBytes = 253;
  auto alphanumeric = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  for (std::string_view part : Split(name, '.')) {
    if (part.empty() || !alphanumeric(part.front()) || !alphanumeric(part.back())) return false;
    for (char c : part) {
      if (!alphanumeric(c) && c != '-' && c != '_') return false;
    }
  }
  return name.size() <= kMaxBytes;
}

void CheckSysctls(const Value& context, const std::string& path, FieldErrors& errors) {
  std::set<std::string> seen;
  for (const auto& [sysctl, sysctl_at] : ItemsOf(context, "sysctls", path)) {
    const std::string at = PathField(sysctl_at, "name");
    std::string name(TextOf(sysctl, "name"));
    const bool fresh = seen.insert(name).second;
    if (name.empty()) {
      errors.push_back(RequiredError(at));
    } else if (!IsSysctl(name)) {
      errors.push_back(InvalidText(at, name,
                                   "must have at most 253 characters and match regex "
                                   "([a-z0-9]([-_a-z0-9]*[a-z0-9])?\\.)*[a-z0-9]([-_a-z0-9]*"
                                   "[a-z0-9])?"));
    } else if (!fresh) {
      errors.push_back(DuplicateError(at, Value(name)));
    }
  }
}

void CheckSeccomp(const Value& context, const std::string& path, FieldErrors& errors) {
  const Value* profile = MemberOf(context, "seccompProfile");
  if (profile == nullptr) return;
  const std::string at = PathField(path, "seccompProfile");
  const std::string_view type = TextOf(*profile, "type");
  if (type.empty()) {
    errors.push_back(RequiredError(PathField(at, "type"),
                                   "type is required when seccompProfile is "
                                   "set"));
  } else if (type != "Localhost" && type != "RuntimeDefault" && type != "Unconfined") {
    errors.push_back(NotSupportedError(PathField(at, "type"), type,
                                       {"Localhost", "RuntimeDefault", "Unconfined"}));
  }
  const Value* local = MemberOf(*profile, "localhostProfile");
  const std::string local_at = PathField(at, "localhostProfile");
  if (type != "Localhost") {
    if (local != nullptr) {
      errors.push_back(
          InvalidError(local_at, *profile, "can only be set when seccomp type is Localhost"));
    }
  } else if (local == nullptr) {
    errors.push_back(RequiredError(local_at, "must be set when seccomp type is Localhost"));
  } else {
    CheckDescendingPath(TextIn(*local), local_at, errors);
  }
}

void CheckWindows(const Value& context, const std::string& path, FieldErrors& errors) {
  const Value* options = MemberOf(context, "windowsOptions");
  if (options == nullptr) return;
  const std::string at = PathField(path, "windowsOptions");
  if (const Value* name = MemberOf(*options, "gmsaCredentialSpecName")) {
    CheckText(TextIn(*name), CheckDnsSubdomain, PathField(at, "gmsaCredentialSpecName"), errors);
  }
  const Value* given = MemberOf(*options, "runAsUserName");
  if (given == nullptr) return;
  const std::string_view name = TextIn(*given);
  auto invalid = [&](std::string_view why) {
    errors.push_back(
        InvalidText(PathField(at, "runAsUserName"), name, StrCat("runAsUserName", why)));
  };
  const std::vector<std::string_view> parts = Split(name, '\\');
  if (name.empty()) {
    invalid(" cannot be an empty string");
  } else if (parts.size() > 2) {
    invalid(" cannot contain more than one backslash");
  } else if (parts.back().empty()) {
    invalid("'s User cannot be empty");
  } else if (parts.back().find_first_of("\"/:;|=,+*?<>@[]") != std::string_view::npos) {
    invalid("'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]");
  }
}

bool IsSeccompAnnotation(std::string_view profile) {
  return profile == "runtime/default" || profile == "docker/default" || profile == "unconfined" ||
         profile.starts_with("localhost/");
}

}  // namespace

void CheckPodSecurity(const Value& spec, const std::string& path, FieldErrors& errors) {
  if (json::GetBool(spec, {"hostPID"}) && json::GetBool(spec, {"shareProcessNamespace"})) {
    errors.push_back(InvalidError(PathField(path, "shareProcessNamespace"), Value(true),
                                  "ShareProcessNamespace and HostPID cannot both be enabled"));
  }
  const Value* context = MemberOf(spec, "securityContext");
  if (context == nullptr) return;
  const std::string at = PathField(path, "securityContext");
  for (std::string_view key : {"fsGroup", "runAsUser", "runAsGroup"}) {
    CheckId(*context, key, at, errors);
  }
  constexpr int64_t kMaxId = 2147483647;
  for (const auto& [group, group_at] : ItemsOf(*context, "supplementalGroups", at)) {
    const int64_t id = json::GetInt(group, {});
    if (id >= 0 && id <= kMaxId) continue;
    errors.push_back(InvalidError(group_at, group, "must be between 0 and 2147483647, inclusive"));
  }
  CheckSysctls(*context, at, errors);
  CheckOneOf(*context, "fsGroupChangePolicy", at, {"Always", "OnRootMismatch"}, errors);
  CheckSeccomp(*context, at, errors);
  CheckWindows(*context, at, errors);
}

void CheckContainerSecurity(const Value& container, const std::string& path, FieldErrors& errors) {
  const Value* context = MemberOf(container, "securityContext");
  if (context == nullptr) return;
  const std::string at = PathField(path, "securityContext");
  for (std::string_view key : {"runAsUser", "runAsGroup"}) CheckId(*context, key, at, errors);
  CheckOneOf(*context, "procMount", at, {"Default", "Unmasked"}, errors);
  CheckSeccomp(*context, at, errors);
  if (const Value* escalation = MemberOf(*context, "allowPrivilegeEscalation");
      escalation != nullptr && !json::GetBool(*context, {"allowPrivilegeEscalation"})) {
    if (json::GetBool(*context, {"privileged"})) {
      errors.push_back(InvalidText(
          at, "", "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"));
    }
    for (const Value& capability : json::GetArray(*context, {"capabilities", "add"})) {
      if (TextIn(capability) != "CAP_SYS_ADMIN") continue;
      errors.push_back(InvalidText(at, "",
                                   "cannot set `allowPrivilegeEscalation` to false and "
                                   "`capabilities.Add` CAP_SYS_ADMIN"));
    }
  }
  CheckWindows(*context, at, errors);
}

void CheckSecurityAnnotations(const Value& pod, FieldErrors& errors) {
  constexpr std::string_view kAppArmor = "container.apparmor.security.beta.kubernetes.io/";
  constexpr std::string_view kSeccomp = "container.seccomp.security.alpha.kubernetes.io/";
  std::set<std::string_view> containers;
  for (std::string_view list : {"containers", "initContainers"}) {
    for (const Value& container : json::GetArray(SpecOf(pod), {list})) {
      containers.insert(TextOf(container, "name"));
    }
  }
  for (const auto& annotation : json::GetObject(pod, {"metadata", "annotations"})) {
    const std::string_view key = annotation.key();
    const std::string_view value = TextIn(annotation.value());
    if (key == "kubernetes.io/config.mirror" && TextOf(SpecOf(pod), "nodeName").empty()) {
      errors.push_back(InvalidText(PathKey("metadata.annotations", key), value,
                                   "must set spec.nodeName if mirror pod annotation is set"));
    }
    if ((key == "seccomp.security.alpha.kubernetes.io/pod" || key.starts_with(kSeccomp)) &&
        !IsSeccompAnnotation(value)) {
      errors.push_back(InvalidText(PathField("metadata.annotations", key), value,
                                   "must be a valid seccomp profile"));
    }
    if (!key.starts_with(kAppArmor)) continue;
    const std::string_view name = key.substr(kAppArmor.size());
    if (!containers.contains(name)) {
      errors.push_back(
          InvalidText(PathKey("metadata.annotations", key), name, "container not found"));
    }
    if (!value.empty() && value != "runtime/default" && value != "unconfined" &&
        !value.starts_with("localhost/")) {
      errors.push_back(InvalidText(PathKey("metadata.annotations", key), value,
                                   StrCat("invalid AppArmor profile name: ", Quote(value))));
    }
  }
}

}  // namespace swell::api
