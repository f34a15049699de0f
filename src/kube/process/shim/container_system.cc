#include "kube/process/shim/container_system.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"
#include "base/strings.h"
#include "base/unique_fd.h"
#include "kube/process/shim/mounts.h"

namespace swell::process {
namespace {

// What containerd hides: it tells about the whole machine, or has no namespaces.
constexpr const char* kHiddenPaths[] = {"/proc/acpi",
                                        "/proc/asound",
                                        "/proc/interrupts",
                                        "/proc/kcore",
                                        "/proc/keys",
                                        "/proc/latency_stats",
                                        "/proc/sched_debug",
                                        "/proc/scsi",
                                        "/proc/timer_list",
                                        "/proc/timer_stats",
                                        "/sys/devices/virtual/powercap",
                                        "/sys/firmware",
                                        "/sys/fs/selinux"};
constexpr const char* kReadOnlyPaths[] = {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys",
                                          "/proc/sysrq-trigger"};
constexpr int64_t kTerminalGroup = 5;

std::string InOld(const std::string& path) { return StrCat(kOldRoot, path); }

Status BindDevice(const std::string& host, const std::string& path, int64_t owner) {
  const std::string from = InOld(host);
  struct stat info;
  if (::stat(from.c_str(), &info) != 0) return Status::Ok();
  if (S_ISDIR(info.st_mode)) {
    SWELL_RETURN_IF_ERROR(MakeOwnedDirs(path, owner));
  } else {
    SWELL_RETURN_IF_ERROR(MakeOwnedDirs(path.substr(0, path.rfind('/')), owner));
    SWELL_RETURN_IF_ERROR(MakeOwnedFile(path, owner));
  }
  return Mount(from, path, nullptr, MS_BIND | MS_REC);
}

Status LinkStreams() {
  static constexpr const char* kLinks[][2] = {{"/proc/self/fd", "/dev/fd"},
                                              {"/proc/self/fd/0", "/dev/stdin"},
                                              {"/proc/self/fd/1", "/dev/stdout"},
                                              {"/proc/self/fd/2", "/dev/stderr"},
                                              {"pts/ptmx", "/dev/ptmx"}};
  for (const auto& link : kLinks) {
    if (::symlink(link[0], link[1]) != 0) return ErrnoStatus(errno, StrCat("symlink ", link[1]));
  }
  return Status::Ok();
}

// All the host has, for a privileged container.
Status BindAllDevices(int64_t owner) {
  SWELL_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDir(InOld("/dev")));
  for (const std::string& name : names) {
    struct stat info;
    const std::string path = "/dev/" + name;
    if (::lstat(path.c_str(), &info) == 0) continue;  // ours: ptmx is a link into /dev/pts
    if (::lstat(InOld(path).c_str(), &info) != 0) continue;
    if (name == "pts" || name == "shm" || name == "mqueue" || S_ISLNK(info.st_mode)) continue;
    SWELL_RETURN_IF_ERROR(BindDevice(path, path, owner));
  }
  return Status::Ok();
}

Status MountDev(const ShimSpec& spec) {
  const int64_t owner = spec.first_id;
  const std::string whose = owner == 0 ? "" : StrCat(",uid=", owner, ",gid=", owner);
  SWELL_RETURN_IF_ERROR(Mount("tmpfs", "/dev", "tmpfs", MS_NOSUID, "mode=755,size=1m" + whose));
  for (const char* name : {"null", "zero", "full", "random", "urandom", "tty"}) {
    const std::string path = StrCat("/dev/", name);
    SWELL_RETURN_IF_ERROR(BindDevice(path, path, owner));
  }
  for (const auto& [host, path] : spec.devices) {
    SWELL_RETURN_IF_ERROR(BindDevice(host, path, owner));
  }
  SWELL_RETURN_IF_ERROR(LinkStreams());
  for (const char* dir : {"/dev/pts", "/dev/shm", "/dev/mqueue"}) {
    SWELL_RETURN_IF_ERROR(MakeOwnedDirs(dir, owner, 01777));
  }
  if (spec.privileged) SWELL_RETURN_IF_ERROR(BindAllDevices(owner));
  // Without terminals, or queues, everything but these works.
  const std::string group =
      spec.isolation == Isolation::kFull ? StrCat(",gid=", owner + kTerminalGroup) : std::string();
  Status pts = Mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
                     "newinstance,ptmxmode=0666,mode=620" + group);
  (void)pts;
  Status queues = Mount("mqueue", "/dev/mqueue", "mqueue", MS_NOSUID | MS_NODEV | MS_NOEXEC);
  (void)queues;
  return Status::Ok();
}

// HIERARCHY/INSTANCE/CONTAINER, or HIERARCHY/INSTANCE/POD/CONTAINER: its name is what programs look
// for.
std::string HierarchyOf(const ShimSpec& spec, const CgroupDir& group) {
  const auto parent = [](const std::string& path) { return path.substr(0, path.rfind('/')); };
  const std::string above = parent(group.path);
  const bool below_pod = std::any_of(spec.pod_cgroups.begin(), spec.pod_cgroups.end(),
                                     [&above](const CgroupDir& pod) { return pod.path == above; });
  return parent(below_pod ? parent(above) : above);
}

// Programs read their limits below /sys/fs/cgroup: there is the container's own group, and no
// other.
Status ShowOwnCgroups(const ShimSpec& spec) {
  struct stat info;
  if (spec.cgroups.empty() || ::stat("/sys/fs/cgroup", &info) != 0) return Status::Ok();
  const bool unified = FileExists(InOld(spec.cgroups[0].path + "/cgroup.controllers"));
  if (unified) {
    SWELL_RETURN_IF_ERROR(Mount(InOld(spec.cgroups[0].path), "/sys/fs/cgroup", nullptr, MS_BIND));
    return MakeReadOnly("/sys/fs/cgroup");
  }
  SWELL_RETURN_IF_ERROR(MountTmpfs("/sys/fs/cgroup", "mode=755,size=64k", spec.first_id));
  for (const CgroupDir& group : spec.cgroups) {
    const std::string hierarchy = HierarchyOf(spec, group);
    const std::string at = "/sys/fs/cgroup" + hierarchy.substr(hierarchy.rfind('/'));
    SWELL_RETURN_IF_ERROR(MakeOwnedDirs(at, spec.first_id));
    Status bound = Mount(InOld(group.path), at, nullptr, MS_BIND);
    (void)bound;  // the group could not be made, and so limits nothing
  }
  return MakeReadOnly("/sys/fs/cgroup");
}

Status MountSys(const ShimSpec& spec) {
  const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  if (spec.privileged) return Mount(InOld("/sys"), "/sys", nullptr, MS_BIND | MS_REC);
  if (!Mount("sysfs", "/sys", "sysfs", flags | MS_RDONLY).ok()) {
    // Not without a network namespace of its own: then the host's, as far as it can be read.
    SWELL_RETURN_IF_ERROR(Mount(InOld("/sys"), "/sys", nullptr, MS_BIND | MS_REC));
    return MakeReadOnly("/sys");
  }
  return ShowOwnCgroups(spec);
}

Status MountProc() {
  Status fresh = Mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC);
  if (fresh.ok()) return fresh;
  return Mount(InOld("/proc"), "/proc", nullptr, MS_BIND | MS_REC);
}

Status CoverSystem() {
  for (const char* path : kHiddenPaths) {
    struct stat info;
    if (::lstat(path, &info) != 0) continue;
    if (S_ISDIR(info.st_mode)) {
      SWELL_RETURN_IF_ERROR(Mount("tmpfs", path, "tmpfs", MS_RDONLY, "mode=555,size=4k"));
    } else {
      SWELL_RETURN_IF_ERROR(Mount("/dev/null", path, nullptr, MS_BIND));
    }
  }
  for (const char* path : kReadOnlyPaths) {
    if (!FileExists(path)) continue;
    SWELL_RETURN_IF_ERROR(Mount(path, path, nullptr, MS_BIND | MS_REC));
    SWELL_RETURN_IF_ERROR(MakeReadOnly(path));
  }
  return Status::Ok();
}

Status MountTmp(const ShimSpec& spec, const std::string& dir) {
  if (spec.host_tmp) return Status::Ok();
  const std::string tmp = InOld(dir + "/tmp");
  SWELL_RETURN_IF_ERROR(MakeDirs(tmp));
  const auto owner = static_cast<uid_t>(spec.first_id);
  if (owner != 0 && ::chown(tmp.c_str(), owner, owner) != 0) return ErrnoStatus(errno, "give /tmp");
  ::chmod(tmp.c_str(), 01777);
  SWELL_RETURN_IF_ERROR(MakeOwnedDirs("/tmp", spec.first_id, 01777));
  return Mount(tmp, "/tmp", nullptr, MS_BIND);
}

}  // namespace

Status MountSystem(const ShimSpec& spec, const std::string& dir) {
  for (const char* top : {"/proc", "/sys", "/dev", "/run"}) {
    SWELL_RETURN_IF_ERROR(MakeOwnedDirs(top, spec.first_id));
  }
  SWELL_RETURN_IF_ERROR(MountProc());
  SWELL_RETURN_IF_ERROR(MountSys(spec));
  SWELL_RETURN_IF_ERROR(MountDev(spec));
  if (!spec.has_image) {
    // These keep the host's own out of sight.
    SWELL_RETURN_IF_ERROR(MountTmpfs("/run", "mode=755,size=64m", spec.first_id));
    SWELL_RETURN_IF_ERROR(MountTmp(spec, dir));
  }
  for (const std::string& hidden : spec.hidden) {
    // An image has none of the host's files, and may have a directory of that name.
    if (spec.has_image || !FileExists(hidden)) continue;
    SWELL_RETURN_IF_ERROR(MountTmpfs(hidden, "mode=755,size=1m", 0));
  }
  return spec.privileged || spec.unmasked_proc ? Status::Ok() : CoverSystem();
}

Status SetSysctls(const ShimSpec& spec) {
  for (const auto& [name, value] : spec.sysctls) {
    std::string path = "/proc/sys/" + name;
    std::replace(path.begin(), path.end(), '.', '/');
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd.valid() ||
        ::write(fd.get(), value.data(), value.size()) != static_cast<ssize_t>(value.size())) {
      return ErrnoStatus(errno, StrCat("securityContext.sysctls: ", name, "=", Quote(value)));
    }
  }
  return Status::Ok();
}

}  // namespace swell::process
