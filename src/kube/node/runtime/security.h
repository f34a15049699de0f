// ContainerSecurity, PodSecurity: what a pod's and a container's securityContext ask for, read
// once. A value that no node could honour is an error that names container, field and value.
// - Threads: values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace swell::node {

// A bit per capability, numbered as by Linux.
using CapabilitySet = uint64_t;
inline constexpr int kCapabilities = 41;
inline constexpr CapabilitySet kAllCapabilities = (CapabilitySet{1} << kCapabilities) - 1;

// "NET_ADMIN", with or without CAP_ in front, in any case; nullopt: there is none of that name.
std::optional<int> CapabilityNumber(std::string_view name);
std::string_view CapabilityName(int number);
// What a container has that asks for nothing: containerd's list without MKNOD, since nobody but the
// node decides which devices there are.
CapabilitySet DefaultCapabilities();

struct SecurityProfile {
  enum class Kind { kRuntimeDefault, kUnconfined, kLocalhost };
  Kind kind = Kind::kRuntimeDefault;
  std::string name;        // kLocalhost
  bool asked_for = false;  // not merely the default
};

struct ContainerSecurity {
  CapabilitySet capabilities = DefaultCapabilities();
  bool privileged = false;
  bool no_new_privileges = false;  // allowPrivilegeEscalation: false
  bool unmasked_proc = false;
  SecurityProfile seccomp;
  SecurityProfile app_armor;
};

struct PodSecurity {
  bool host_pid = false;
  bool host_ipc = false;
  bool privileged = false;  // one of its containers is
  std::optional<bool> host_users;
  std::vector<std::pair<std::string, std::string>> sysctls;
  int64_t highest_id = 0;   // of the users and groups that it names
  bool never_root = false;  // every container names a user who is not root
  // Nobody gave these ids to the pod's author: they are worth nothing on the machine.
  bool ids_chosen = false;
};

Result<ContainerSecurity> ReadContainerSecurity(const json::Value& pod,
                                                const json::Value& container);
Result<PodSecurity> ReadPodSecurity(const json::Value& pod);
// Both, for all containers; what is wrong is said once, before anything of the pod exists.
Status CheckPodSecurity(const json::Value& pod);

// The user of a pod whose containers all name the same one.
std::optional<int64_t> OnlyUser(const json::Value& pod);
// Whether any container names its user.
bool NamesUsers(const json::Value& pod);

}  // namespace swell::node
