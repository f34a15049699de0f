#include "kube/process/machine/host_support.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/strings.h"
#include "kube/process/shim/device_filter.h"
#include "kube/process/shim/id_map.h"

namespace swell::process {
namespace {

constexpr int64_t kPeriodUs = 100'000;

bool EndsWell(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Whether a child may do this; it does nothing but system calls.
bool ChildCan(unsigned flags) {
  pid_t child = ::fork();
  if (child < 0) return false;
  if (child == 0) {
    if (::unshare(static_cast<int>(flags)) != 0) ::_exit(1);
    if ((flags & CLONE_NEWNS) != 0 &&
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      ::_exit(2);
    }
    ::_exit(0);
  }
  return EndsWell(child);
}

// Whether a process without capabilities is kept from lowering the score that it was given. The
// kernel keeps it from that if the one who gave it has CAP_SYS_RESOURCE.
bool ScoresStay() {
  const pid_t child = ::fork();
  if (child < 0) return false;
  if (child == 0) {
    __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
    const int file = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    const bool ready = ::write(file, "1000", 4) == 4 && ::syscall(SYS_capset, &header, none) == 0;
    ::_exit(ready && ::write(file, "999", 3) < 0 ? 0 : 1);
  }
  return EndsWell(child);
}

bool Write(const std::string& path, std::string_view text) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t n = ::write(fd, text.data(), text.size());
  ::close(fd);
  return n == static_cast<ssize_t>(text.size());
}

std::string ParentOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

// Mount points of control group hierarchies: (type, options, path).
struct Hierarchy {
  std::string type, options, path;
};

std::vector<Hierarchy> Hierarchies() {
  std::vector<Hierarchy> found;
  auto mounts = ReadFile("/proc/self/mounts", 4 << 20);
  if (!mounts.ok()) return found;
  for (std::string_view line : Split(*mounts, '\n')) {
    std::vector<std::string_view> fields = Split(line, ' ');
    if (fields.size() < 4 || !fields[2].starts_with("cgroup")) continue;
    found.push_back(
        {std::string(fields[2]), "," + std::string(fields[3]) + ",", std::string(fields[1])});
  }
  return found;
}

// systemd delegates groups to a user's services, and none to a login. Root may divide all that can
// be written.
std::string WhyNotDivided(const std::string& mount) {
  if (::geteuid() == 0) return StrCat("the control groups at ", mount, " are mounted read-only");
  return "this user has no control groups here: start it with systemd-run --user --scope";
}

CgroupSupport TryVersion2(const std::string& mount, const std::string& instance) {
  CgroupSupport support;
  const auto own = ReadFile("/proc/self/cgroup", 64 << 10);
  const std::string root = GroupToDivide(mount, own.ok() ? *own : "");
  if (root.empty()) {
    support.why_not = WhyNotDivided(mount);
    return support;
  }
  std::string dir = StrCat(root, "/", instance);
  // In a group that holds processes this fails; at the root and where it was delegated it works.
  Write(root + "/cgroup.subtree_control", "+memory +cpu");
  Write(root + "/cgroup.subtree_control", "+pids");
  bool made = MakeDirs(dir).ok();
  if (made && Write(dir + "/cgroup.subtree_control", "+memory +cpu")) {
    support.version = 2;
    support.memory_dir = support.cpu_dir = dir;
    if (Write(dir + "/cgroup.subtree_control", "+pids")) support.pids_dir = dir;
    support.devices = CanFilterDevices().ok();
    return support;
  }
  if (made) ::rmdir(dir.c_str());
  support.why_not = StrCat("the control group ", root,
                           " cannot be divided: it holds processes, or has no memory and cpu "
                           "controllers");
  return support;
}

CgroupSupport DetectCgroups(const std::string& instance) {
  CgroupSupport one;
  std::string why_not = "no control groups are mounted";
  for (const Hierarchy& hierarchy : Hierarchies()) {
    if (hierarchy.type == "cgroup2") {
      auto controllers = ReadFile(hierarchy.path + "/cgroup.controllers", 4096);
      if (!controllers.ok() || controllers->find("memory") == std::string::npos) continue;
      CgroupSupport two = TryVersion2(hierarchy.path, instance);
      if (two.version == 2) return two;
      why_not = two.why_not;
      continue;
    }
    std::string dir = StrCat(hierarchy.path, "/", instance);
    bool memory = hierarchy.options.find(",memory,") != std::string::npos;
    bool cpu = hierarchy.options.find(",cpu,") != std::string::npos;
    const bool pids = hierarchy.options.find(",pids,") != std::string::npos;
    const bool devices = hierarchy.options.find(",devices,") != std::string::npos;
    if (!memory && !cpu && !pids && !devices) continue;
    if (!MakeDirs(dir).ok() || ::access((dir + "/cgroup.procs").c_str(), W_OK) != 0) {
      why_not = StrCat("cgroup v1 at ", hierarchy.path, " is not writable");
      continue;
    }
    one.version = 1;
    if (memory) one.memory_dir = dir;
    if (cpu) one.cpu_dir = dir;
    if (pids) one.pids_dir = dir;
    if (devices) one.devices_dir = dir;
    one.devices = one.devices || devices;
  }
  if (one.version == 0) one.why_not = why_not;
  return one;
}

void DetectUsers(const std::string& data_dir, const HostOptions& options, HostSupport& support) {
  if (support.isolation != Isolation::kFull) return;
  Status possible = [&]() -> Status {
    if (!options.users) return Status(Code::kUnavailable, "they are switched off");
    if (!support.network) return Status(Code::kUnavailable, "pods have no networks of their own");
    SWELL_ASSIGN_OR_RETURN(const Namespaces made,
                           MakeNamespaces(PodIdMap(kIdsOfPod), NetworkNamespace::kNone));
    return CheckMappable(data_dir, made.user.get());
  }();
  support.users = possible.ok();
  if (possible.ok()) return;
  support.missing.push_back(
      StrCat("pods have no user namespaces, so root in a pod is root here: ", possible.message()));
}

void DetectScores(HostSupport& support) {
  support.scores = ScoresStay();
  if (support.isolation != Isolation::kFull || support.scores) return;
  support.missing.push_back(
      "if memory runs out, a pod can have other processes ended before it: swell lacks the "
      "capability SYS_RESOURCE");
}

void DetectSeccomp(HostSupport& support) {
  const uint32_t action = SECCOMP_RET_ERRNO;
  support.seccomp = ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
  if (!support.seccomp) {
    support.missing.push_back("system calls are not filtered: the kernel has no seccomp");
  }
}

}  // namespace

std::string GroupToDivide(const std::string& mount, std::string_view own_groups) {
  std::string_view own;
  for (std::string_view line : Split(own_groups, '\n')) {
    if (line.starts_with("0::/")) own = line.substr(4);
  }
  // The kernel writes /../… if the process is outside of what is mounted.
  if (own.starts_with("..")) own = {};
  std::string group = mount;
  const auto may = [&group](const char* file) {
    return ::access(StrCat(group, "/", file).c_str(), W_OK) == 0;
  };
  const auto ours = [&may] {
    return may("") && may("cgroup.procs") && may("cgroup.subtree_control");
  };
  if (ours()) return group;
  for (std::string_view step : Split(own, '/')) {
    if (step.empty()) continue;
    group += StrCat("/", step);
    if (ours()) return group;
  }
  return "";
}

std::string HostSupport::Limits() const { return Join(missing, "; "); }

std::vector<std::string> NotLimited(const CgroupSupport& support) {
  std::vector<std::string> out;
  if (support.version == 0) {
    out.push_back(StrCat("memory and CPU limits are not enforced: ", support.why_not));
  } else {
    if (support.memory_dir.empty()) {
      out.push_back("memory limits are not enforced: no writable memory controller");
    }
    if (support.cpu_dir.empty()) {
      out.push_back("CPU limits are not enforced: no writable cpu controller");
    }
  }
  if (support.pids_dir.empty()) {
    out.push_back("the number of a pod's processes is not limited: no writable pids controller");
  }
  return out;
}

HostSupport DetectHostSupport(const std::string& data_dir,
                              const std::string& instance,
                              const HostOptions& options) {
  HostSupport support;
  bool root = ::geteuid() == 0;
  unsigned basic = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC;
  if (!options.namespaces) {
    support.missing.push_back(
        "pods see the host's processes and files: namespaces are switched off");
  } else if (root && ChildCan(basic)) {
    support.isolation = Isolation::kFull;
  } else if (ChildCan(basic | CLONE_NEWUSER)) {
    support.isolation = Isolation::kUser;
  } else {
    support.missing.push_back(
        "pods see the host's files, names of services do not resolve, volumes cannot be mounted: "
        "namespaces are not permitted");
  }
  support.network =
      options.network && support.isolation == Isolation::kFull && ChildCan(CLONE_NEWNET);
  if (!support.network) {
    support.missing.push_back(
        "pods share the host's network, so their ports must differ: that needs root and network "
        "namespaces");
  }
  if (options.cgroups) {
    support.cgroups = DetectCgroups(instance);
  } else {
    support.cgroups.why_not = "control groups are switched off";
  }
  for (std::string& what : NotLimited(support.cgroups)) {
    support.missing.push_back(std::move(what));
  }
  if (support.isolation == Isolation::kFull && !support.cgroups.devices) {
    support.missing.push_back(
        "pods that may make device files (MKNOD, with the machine's ids) open any device: no "
        "writable devices controller");
  }
  DetectUsers(data_dir, options, support);
  DetectSeccomp(support);
  DetectScores(support);
  return support;
}

namespace {

// Containers have it from start to end; the group of a whole pod never has it.
bool OfContainerAlone(const std::string& file) {
  return file == "pids.max" || file == "memory.oom.group";
}

}  // namespace

void FillCgroups(const CgroupSupport& support,
                 const std::string& container_id,
                 int64_t cpu_request_milli,
                 int64_t cpu_limit_milli,
                 int64_t memory_limit_bytes,
                 ShimSpec& spec) {
  if (support.version == 0) return;
  int64_t quota = std::max<int64_t>(1000, cpu_limit_milli * kPeriodUs / 1000);
  // Kubernetes gives a container that requests no CPU the least there is.
  const int64_t shares = std::clamp<int64_t>(cpu_request_milli * 1024 / 1000, 2, 262144);
  std::string limit = std::to_string(memory_limit_bytes);
  if (support.version == 2) {
    CgroupDir dir{StrCat(support.memory_dir, "/", container_id), {}};
    if (!support.pids_dir.empty()) {
      dir.values.emplace_back("pids.max", std::to_string(ProcessLimit()));
    }
    // Kubernetes' formula from CPU shares to weights (1..10000).
    dir.values.emplace_back("cpu.weight", std::to_string(1 + (shares - 2) * 9999 / 262142));
    if (cpu_limit_milli > 0) dir.values.emplace_back("cpu.max", StrCat(quota, " ", kPeriodUs));
    if (memory_limit_bytes > 0) {
      dir.values.emplace_back("memory.max", limit);
      dir.values.emplace_back("memory.swap.max", "0");
    }
    // As on Kubernetes: a program of many processes waits for ever for one that is killed.
    dir.values.emplace_back("memory.oom.group", "1");
    spec.oom_file = dir.path + "/memory.events";
    spec.cgroups.push_back(std::move(dir));
    return;
  }
  if (!support.pids_dir.empty()) {
    spec.cgroups.push_back({StrCat(support.pids_dir, "/", container_id),
                            {{"pids.max", std::to_string(ProcessLimit())}}});
  }
  // A container without amounts may get some while it runs.
  if (!support.cpu_dir.empty()) {
    CgroupDir dir{StrCat(support.cpu_dir, "/", container_id), {}};
    dir.values.emplace_back("cpu.shares", std::to_string(shares));
    if (cpu_limit_milli > 0) {
      dir.values.emplace_back("cpu.cfs_period_us", std::to_string(kPeriodUs));
      dir.values.emplace_back("cpu.cfs_quota_us", std::to_string(quota));
    }
    spec.cgroups.push_back(std::move(dir));
  }
  if (!support.memory_dir.empty()) {
    CgroupDir dir{StrCat(support.memory_dir, "/", container_id), {}};
    if (memory_limit_bytes > 0) {
      dir.values.emplace_back("memory.limit_in_bytes", limit);
      dir.values.emplace_back("memory.memsw.limit_in_bytes", limit);
    }
    spec.oom_file = dir.path + "/memory.oom_control";
    spec.cgroups.push_back(std::move(dir));
  }
}

void PutBelowPod(const CgroupSupport& support,
                 const std::string& pod_uid,
                 const node::CpuAndMemory& whole_pod,
                 ShimSpec& spec) {
  ShimSpec pod;
  FillCgroups(support, pod_uid, whole_pod.cpu_request_milli, whole_pod.cpu_limit_milli,
              whole_pod.memory_limit_bytes, pod);
  for (CgroupDir& group : pod.cgroups) {
    std::erase_if(group.values, [](const auto& value) { return OfContainerAlone(value.first); });
    const std::string parent = ParentOf(group.path);
    if (parent != support.cpu_dir && parent != support.memory_dir) continue;
    for (CgroupDir& own : spec.cgroups) {
      if (ParentOf(own.path) != parent) continue;
      const std::string below = StrCat(group.path, own.path.substr(parent.size()));
      if (spec.oom_file.starts_with(own.path + "/")) {
        spec.oom_file = below + spec.oom_file.substr(own.path.size());
      }
      own.path = below;
    }
    // First, while nothing is below the group.
    std::vector<std::pair<std::string, std::string>> first;
    if (support.version == 2) {
      first.emplace_back("cgroup.subtree_control", "+memory +cpu");
      if (!support.pids_dir.empty()) first.emplace_back("cgroup.subtree_control", "+pids");
    } else if (parent == support.memory_dir) {
      first.emplace_back("memory.use_hierarchy", "1");
    }
    group.values.insert(group.values.begin(), first.begin(), first.end());
    spec.pod_cgroups.push_back(std::move(group));
  }
}

std::string CgroupOf(const std::string& parent, const std::string& container_id) {
  const std::string below =
      StrCat(parent, "/", container_id.substr(0, container_id.find('.')), "/", container_id);
  return FileExists(below) ? below : StrCat(parent, "/", container_id);
}

namespace {

// Version 2 accepts any limit, and kills processes that are above it.
Status CheckMemoryInUse(const CgroupSupport& support,
                        const std::string& container_id,
                        int64_t limit) {
  if (support.version != 2 || limit <= 0) return Status::Ok();
  const auto text =
      ReadFile(StrCat(CgroupOf(support.memory_dir, container_id), "/memory.current"), 64);
  const auto used = text.ok() ? ParseInt(Trim(*text)) : std::nullopt;
  if (!used || *used <= limit) return Status::Ok();
  return Status(Code::kInvalid, StrCat("a memory limit of ", limit, " bytes is below the ", *used,
                                       " bytes that are in use"));
}

}  // namespace

Status ResizeCgroups(const CgroupSupport& support,
                     const std::string& container_id,
                     const node::CpuAndMemory& amounts) {
  SWELL_RETURN_IF_ERROR(CheckMemoryInUse(support, container_id, amounts.memory_limit_bytes));
  ShimSpec wanted;
  FillCgroups(support, container_id, amounts.cpu_request_milli, amounts.cpu_limit_milli,
              amounts.memory_limit_bytes, wanted);
  for (const CgroupDir& group : wanted.cgroups) {
    // Version 1 has two limits of memory, and the one for memory with swap may not be the lower
    // one. When they grow it is written first, else last.
    bool again = true;
    for (int round = 0; again && round < 2; ++round) {
      again = false;
      for (const auto& [file, value] : group.values) {
        const std::string path = StrCat(CgroupOf(ParentOf(group.path), container_id), "/", file);
        if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT &&
            file.starts_with("memory.memsw"))
          continue;  // the kernel does not count swap
        if (OfContainerAlone(file) || Write(path, value)) continue;
        if (round == 1) {
          return Status(Code::kInvalid, StrCat("the kernel does not accept ", file, " = ", value,
                                               ": ", std::strerror(errno)));
        }
        again = true;
      }
    }
  }
  return Status::Ok();
}

void FillDeviceGroup(const CgroupSupport& support,
                     const std::string& container_id,
                     ShimSpec& spec) {
  const std::string parent = support.version == 2 ? support.memory_dir : support.devices_dir;
  if (!support.devices || parent.empty() || spec.privileged) return;
  DeviceRules rules = UsualDevices();
  auto allow = [&rules](const std::string& path) {
    std::string rule = DeviceRuleOf(path);
    if (!rule.empty()) rules.push_back(std::move(rule));
  };
  for (const auto& [node, target] : spec.devices) allow(node);
  // A volume that is a device; those below a directory are not given.
  for (const ShimMount& mount : spec.mounts) allow(mount.source);
  const std::string path = StrCat(parent, "/", container_id);
  const auto found = std::find_if(spec.cgroups.begin(), spec.cgroups.end(),
                                  [&path](const CgroupDir& dir) { return dir.path == path; });
  if (found != spec.cgroups.end()) {
    found->devices = std::move(rules);
  } else {
    spec.cgroups.push_back({path, {}, std::move(rules)});
  }
}

int64_t ProcessLimit() {
  constexpr int64_t kMost = 16'384, kLeast = 1'024;
  auto text = ReadFile("/proc/sys/kernel/pid_max", 64);
  const int64_t machine = text.ok() ? ParseInt(Trim(*text)).value_or(32'768) : 32'768;
  return std::clamp(machine / 4, kLeast, kMost);
}

std::string ShimGroup(const CgroupSupport& support) {
  return support.version == 2 ? support.memory_dir + "/shims" : "";
}

void CleanCgroups(const CgroupSupport& support,
                  const std::function<bool(const std::string& pod_uid)>& known) {
  for (const std::string& parent :
       {support.memory_dir, support.cpu_dir, support.pids_dir, support.devices_dir}) {
    if (parent.empty()) continue;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(parent, error)) {
      // A group's own files are dozens, so they are not even tried.
      if (!entry.is_directory(error) || entry.path() == ShimGroup(support)) continue;
      const std::string name = entry.path().filename();
      if (known(name.substr(0, name.find('.')))) continue;
      for (const auto& below : std::filesystem::directory_iterator(entry.path(), error)) {
        if (below.is_directory(error)) ::rmdir(below.path().c_str());
      }
      ::rmdir(entry.path().c_str());
    }
  }
}

void RemoveCgroups(const CgroupSupport& support) {
  if (const std::string shims = ShimGroup(support); !shims.empty()) ::rmdir(shims.c_str());
  for (const std::string& parent :
       {support.memory_dir, support.cpu_dir, support.pids_dir, support.devices_dir}) {
    if (!parent.empty()) ::rmdir(parent.c_str());
  }
}

}  // namespace swell::process
