#include "kube/process/shim/confine.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <vector>

#include "base/file.h"
#include "base/strings.h"

namespace swell::process {
namespace {

constexpr size_t kFilterBytesMax = BPF_MAXINSNS * sizeof(sock_filter);

// Effective, permitted and, for none at all, inheritable; ambient ones go with these.
bool SetCapabilities(uint64_t set) {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  for (int half = 0; half < 2; ++half) {
    data[half].effective = data[half].permitted = static_cast<uint32_t>(set >> (32 * half));
  }
  return ::syscall(SYS_capset, &header, data) == 0;
}

uint64_t PermittedCapabilities() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return 0;
  return data[0].permitted | uint64_t{data[1].permitted} << 32;
}

// Nobody who is executed from here on can get them, whatever file it is.
Status BoundCapabilities(uint64_t set) {
  for (int number = 0; ::prctl(PR_CAPBSET_READ, number) >= 0; ++number) {
    if ((set >> number & 1) != 0) continue;
    if (::prctl(PR_CAPBSET_DROP, number) != 0) return ErrnoStatus(errno, "give up capabilities");
  }
  return Status::Ok();
}

Status InstallFilter(const std::string& filter) {
  sock_fprog program = {};
  program.len = static_cast<unsigned short>(filter.size() / sizeof(sock_filter));
  program.filter = reinterpret_cast<sock_filter*>(const_cast<char*>(filter.data()));
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0) return Status::Ok();
  return ErrnoStatus(errno, "seccompProfile");
}

Status BecomeUser(const ShimSpec& spec) {
  // Always, also for none: the groups of who started Swell are not the container's.
  std::vector<gid_t> groups;
  for (int64_t group : spec.groups) groups.push_back(static_cast<gid_t>(group));
  // Without root only one group is mapped, and the kernel forbids to change the list.
  const bool may = spec.isolation != Isolation::kUser && ::geteuid() == 0;
  if (may && ::setgroups(groups.size(), groups.data()) != 0) {
    return ErrnoStatus(errno, "supplemental groups");
  }
  if (spec.gid && ::setgid(static_cast<gid_t>(*spec.gid)) != 0) {
    return ErrnoStatus(errno, StrCat("runAsGroup ", *spec.gid));
  }
  if (spec.uid && ::setuid(static_cast<uid_t>(*spec.uid)) != 0) {
    return ErrnoStatus(errno, StrCat("runAsUser ", *spec.uid));
  }
  return Status::Ok();
}

Status UseAppArmor(const std::string& profile) {
  if (profile.empty()) return Status::Ok();
  for (const char* path : {"/proc/self/attr/apparmor/exec", "/proc/self/attr/exec"}) {
    const UniqueFd fd(::open(path, O_WRONLY | O_CLOEXEC));
    if (!fd.valid()) continue;
    const std::string text = "exec " + profile;
    if (::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) {
      return Status::Ok();
    }
    return ErrnoStatus(errno, StrCat("appArmorProfile ", Quote(profile)));
  }
  return Status(Code::kInvalid,
                StrCat("appArmorProfile ", Quote(profile), ": this machine has no AppArmor"));
}

Result<UniqueFd> OpenUserNamespace(const ShimSpec& spec) {
  if (spec.user_namespace.empty()) return UniqueFd();
  UniqueFd fd(::open(spec.user_namespace.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "open user namespace " + spec.user_namespace);
  return fd;
}

Result<std::string> ReadFilter(const ShimSpec& spec) {
  if (spec.seccomp_file.empty()) return std::string();
  SWELL_ASSIGN_OR_RETURN(std::string filter, ReadFile(spec.seccomp_file, kFilterBytesMax));
  if (!filter.empty() && filter.size() % sizeof(sock_filter) == 0) return filter;
  return Status(Code::kInvalid, spec.seccomp_file + ": not a filter of system calls");
}

}  // namespace

Result<ConfineFiles> OpenConfineFiles(const ShimSpec& spec) {
  ConfineFiles files;
  SWELL_ASSIGN_OR_RETURN(files.user_namespace, OpenUserNamespace(spec));
  SWELL_ASSIGN_OR_RETURN(files.filter, ReadFilter(spec));
  return files;
}

Status EnterUserNamespace(const UniqueFd& user_namespace) {
  if (!user_namespace.valid()) return Status::Ok();
  if (::setns(user_namespace.get(), CLONE_NEWUSER) != 0) {
    return ErrnoStatus(errno, "enter the pod's user namespace");
  }
  if (::setresgid(0, 0, 0) != 0 || ::setgroups(0, nullptr) != 0 || ::setresuid(0, 0, 0) != 0) {
    return ErrnoStatus(errno, "become root of the pod's user namespace");
  }
  // Becoming another has undone it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  return Status::Ok();
}

void KeepOnlyKill() {
  const uint64_t kill = uint64_t{1} << CAP_KILL;
  Status bounded = BoundCapabilities(kill);
  (void)bounded;  // it executes nothing
  SetCapabilities(PermittedCapabilities() & kill);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
}

Status Confine(const ShimSpec& spec, const std::string& filter) {
  if (!spec.confined) return BecomeUser(spec);  // written by an older version
  // Keys of the host's session are not the container's.
  ::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
  SWELL_RETURN_IF_ERROR(UseAppArmor(spec.app_armor));
  const uint64_t held = PermittedCapabilities();
  // A process that holds no capabilities must promise to gain none before it may filter.
  const bool promise = spec.no_new_privileges || (held >> CAP_SYS_ADMIN & 1) == 0;
  if ((held >> CAP_SETPCAP & 1) != 0) SWELL_RETURN_IF_ERROR(BoundCapabilities(spec.capabilities));
  if (!promise && !filter.empty()) SWELL_RETURN_IF_ERROR(InstallFilter(filter));
  SWELL_RETURN_IF_ERROR(BecomeUser(spec));
  if (!SetCapabilities(PermittedCapabilities() & spec.capabilities)) {
    return ErrnoStatus(errno, "set capabilities");
  }
  const bool filter_now = promise && !filter.empty();
  if ((spec.no_new_privileges || filter_now) && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return ErrnoStatus(errno, "allowPrivilegeEscalation: false");
  }
  return filter_now ? InstallFilter(filter) : Status::Ok();
}

}  // namespace swell::process
