#include "kube/cri/requests.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/strings.h"
#include "kube/node/spec/pod_spec.h"
#include "kube/process/files/cdi.h"
#include "kube/process/left_state.h"
#include "kube/process/machine/gpu_nodes.h"
#include "kube/process/machine/virtual_smi.h"
#include "kube/process/shim/beneath.h"
#include "kube/process/shim/mounts.h"
#include "kube/process/shim_spec_builder.h"

namespace swell::cri {
namespace {

using node::ContainerSpec;
using process::ProcessPod;
using Env = std::vector<std::pair<std::string, std::string>>;

enum NamespaceMode : int64_t { kPod = 0, kContainer = 1, kNode = 2, kTarget = 3 };
constexpr int64_t kCpuPeriodUs = 100'000;
constexpr int64_t kSharesOfCpu = 1024;
constexpr int64_t kSharesMin = 2;

// The kubelet's lists: the parts of /proc and /sys that a container does not see, or may only read.
constexpr const char* kMasked[] = {"/proc/asound",
                                   "/proc/acpi",
                                   "/proc/kcore",
                                   "/proc/keys",
                                   "/proc/latency_stats",
                                   "/proc/timer_list",
                                   "/proc/timer_stats",
                                   "/proc/sched_debug",
                                   "/proc/scsi",
                                   "/sys/firmware",
                                   "/sys/devices/virtual/powercap"};
constexpr const char* kReadOnly[] = {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys",
                                     "/proc/sysrq-trigger"};

void SetEnv(Env& env, const std::string& name, const std::string& value) {
  std::erase_if(env, [&](const auto& item) { return item.first == name; });
  env.emplace_back(name, value);
}

Message Boxed(int64_t value) { return Message().Number(1, value); }

Message Namespaces(const ProcessPod& pod, const std::string& target_id, bool of_sandbox) {
  const node::PodSecurity& security = pod.spec.security;
  int64_t pids = of_sandbox ? kPod : kContainer;
  if (security.host_pid) pids = kNode;
  if (!target_id.empty()) pids = kTarget;
  return Message()
      .Number(1, pod.spec.host_network ? kNode : kPod)
      .Number(2, pids)
      .Number(3, security.host_ipc ? kNode : kPod)
      .Text(4, target_id);
}

Message Metadata(const ProcessPod& pod, int attempt) {
  return Message()
      .Text(1, pod.spec.name)
      .Text(2, pod.spec.pod_uid)
      .Text(3, pod.spec.ns)
      .Number(4, attempt);
}

Texts LabelsOf(const ProcessPod& pod, const std::string& instance) {
  return {{kInstanceLabel, instance},
          {kUidLabel, pod.spec.pod_uid},
          {"io.kubernetes.pod.name", pod.spec.name},
          {"io.kubernetes.pod.namespace", pod.spec.ns}};
}

// ---- what a container sees ----

Env MakeEnv(const ProcessPod& pod, const ContainerSpec& spec) {
  const std::string own(process::kOwnDir);
  Env env{{"HOSTNAME", pod.spec.hostname}};
  for (const auto& [name, value] : spec.env) SetEnv(env, name, value);
  SetEnv(env, "SWELL_NOTICE_FILE", own + "/notice/notice.json");
  SetEnv(env, "SWELL_REPORT_FILE", own + "/report/report.json");
  const bool given = std::any_of(env.begin(), env.end(), [](const auto& item) {
    return item.first == "SWELL_CHECKPOINT_DIR" && !item.second.empty();
  });
  if (!given) {
    SetEnv(env, "SWELL_CHECKPOINT_DIR", own + "/checkpoints");
    const std::string persist = process::PersistFileOf(pod, spec.mounts);
    if (!persist.empty()) SetEnv(env, "SWELL_PERSIST_FILE", StrCat(own, "/report/", persist));
  }
  SetEnv(env, "SWELL_TERMINATION_LOG", spec.termination_path);
  return env;
}

// Outside of the pod's directory, which is deleted with everything in it: these are bind mounts.
std::string SubPathsDir(const std::string& data_dir, const std::string& uid) {
  return StrCat(data_dir, "/run/subpaths/", uid);
}

// Binds a part of a volume to a path that no container can change. Links do not lead out of the
// volume.
Result<std::string> PinSubPath(const ContainerPlan& plan,
                               const std::string& volume,
                               const std::string& sub_path,
                               size_t number) {
  SWELL_ASSIGN_OR_RETURN(const UniqueFd part, process::OpenBeneath(volume, sub_path));
  struct stat info;
  if (::fstat(part.get(), &info) != 0) return ErrnoStatus(errno, sub_path);
  const std::string dir = SubPathsDir(plan.store.data_dir(), plan.pod.spec.pod_uid);
  SWELL_RETURN_IF_ERROR(MakeDirs(dir, 0700));
  const std::string path =
      StrCat(dir, "/", plan.spec.ref.name, ".", plan.spec.ref.attempt, ".", number);
  SWELL_RETURN_IF_ERROR(S_ISDIR(info.st_mode) ? MakeDirs(path)
                                              : process::ReplaceFile(path, "", 0600));
  SWELL_RETURN_IF_ERROR(process::Mount(process::DescriptorPath(part), path, nullptr, MS_BIND));
  return path;
}

Status AddVolumes(const ContainerPlan& plan, const auto& bind) {
  size_t number = 0;
  for (const node::MountSpec& mount : plan.spec.mounts) {
    const auto volume = plan.pod.volumes.find(mount.volume);
    if (volume == plan.pod.volumes.end()) {
      return Status(Code::kInvalid,
                    StrCat("volumeMounts: the pod has no volume ", Quote(mount.volume)));
    }
    std::string source = volume->second.path;
    if (!mount.sub_path.empty()) {
      SWELL_ASSIGN_OR_RETURN(source, PinSubPath(plan, source, mount.sub_path, number++));
    }
    std::string target = mount.container_path;
    if (!target.starts_with('/')) target.insert(0, "/");
    bind(source, target, mount.read_only);
  }
  return Status::Ok();
}

Status AddMounts(const ContainerPlan& plan, bool other_user, Message& to) {
  const ProcessPod& pod = plan.pod;
  auto bind = [&to](const std::string& source, const std::string& target, bool read_only) {
    to.Add(7, Message().Text(1, target).Text(2, source).Bool(3, read_only));
  };
  const std::string own(process::kOwnDir);
  const std::string dir = pod.ContainerDir(plan.spec.ref);
  SWELL_ASSIGN_OR_RETURN(const std::string checkpoints,
                         plan.store.MakeCheckpointDir(pod, other_user));
  for (const char* file : {"/etc/hosts", "/etc/hostname", "/etc/resolv.conf"}) {
    bind(pod.dir + file, file, false);
  }
  const std::string shm = plan.store.SharedMemoryDir(pod.spec.pod_uid);
  const bool own_shm =
      std::none_of(plan.spec.mounts.begin(), plan.spec.mounts.end(),
                   [](const node::MountSpec& mount) { return mount.container_path == "/dev/shm"; });
  if (own_shm && !pod.spec.security.host_ipc && FileExists(shm)) bind(shm, "/dev/shm", false);
  bind(pod.dir + "/run/notice", own + "/notice", true);
  bind(pod.dir + "/run/report", own + "/report", false);
  bind(checkpoints, own + "/checkpoints", false);
  bind(dir + "/termination-log", plan.spec.termination_path, false);
  if (process::HasVirtualGpus(plan.spec)) {
    bind(dir + "/gpu", std::string(process::kGpuDir), true);
    bind(dir + "/gpu/nvidia-smi", std::string(process::kSmiPath), true);
  }
  return AddVolumes(plan, bind);
}

// ---- GPUs ----

Status AddNodes(const std::vector<std::string>& gpus, Message& to) {
  for (const std::string& node : process::GpuNodes(gpus)) {
    to.Add(8, Message().Text(1, node).Text(2, node).Text(3, "rw"));
  }
  return Status::Ok();
}

// For engines that do not read the machine's CDI files: what these files say, as far as the
// interface can express it.
Status AddCdiEdits(const ContainerPlan& plan,
                   const process::CdiEdits& edits,
                   Env& env,
                   Message& to) {
  if (!edits.hooks.empty()) {
    return Status(Code::kForbidden,
                  StrCat("GPUs: the machine's CDI files name hooks, and this engine (",
                         plan.engine.version.name, " ", plan.engine.version.version,
                         ") does not read these files: containerd does from 1.7 on, with "
                         "enable_cdi; or use a RuntimeClass of NVIDIA's runtime"));
  }
  for (const auto& [name, value] : edits.env) {
    if (name != "NVIDIA_VISIBLE_DEVICES") SetEnv(env, name, value);
  }
  for (const auto& [host, inside] : edits.nodes) {
    to.Add(8, Message().Text(1, inside).Text(2, host).Text(3, "rw"));
  }
  for (const process::ShimMount& mount : edits.mounts) {
    to.Add(7, Message().Text(1, mount.target).Text(2, mount.source).Bool(3, mount.read_only));
  }
  return Status::Ok();
}

Status AddGpus(const ContainerPlan& plan, Env& env, Message& to) {
  const std::vector<std::string> gpus = process::RealGpus(plan.spec.gpus);
  // The handler of the pod's RuntimeClass gives it the devices that its environment names.
  if (gpus.empty() || !plan.pod.spec.runtime_handler.empty()) return Status::Ok();
  SWELL_ASSIGN_OR_RETURN(std::optional<process::CdiEdits> edits,
                         process::ReadCdiEdits(process::CdiDirs(), node::kGpuResource, gpus));
  if (!edits) return AddNodes(gpus, to);
  if (!plan.engine.status.cdi) return AddCdiEdits(plan, *edits, env, to);
  for (const std::string& gpu : gpus) {
    to.Add(17, Message().Text(1, StrCat(node::kGpuResource, "=", gpu)));
  }
  return Status::Ok();
}

// ---- what a container may ----

Status Refuse(const ContainerSpec& spec, std::string_view field, std::string_view why) {
  return Status(Code::kForbidden,
                StrCat("container ", Quote(spec.ref.name), ": ", field, ": ", why));
}

Result<Message> Profile(const ContainerPlan& plan) {
  const node::SecurityProfile& seccomp = plan.spec.security.seccomp;
  using Kind = node::SecurityProfile::Kind;
  if (seccomp.kind != Kind::kLocalhost) {
    const bool none = plan.spec.security.privileged || seccomp.kind == Kind::kUnconfined;
    return Message().Number(1, none ? 1 : 0);
  }
  const std::string what =
      StrCat("securityContext.seccompProfile.localhostProfile: ", Quote(seccomp.name));
  if (seccomp.name.starts_with('/') ||
      StrCat("/", seccomp.name, "/").find("/../") != std::string::npos) {
    return Status(Code::kForbidden, what + " must be a path below the node's profiles");
  }
  const std::string path = StrCat(plan.store.data_dir(), "/seccomp/", seccomp.name);
  if (!FileExists(path)) {
    return Status(Code::kForbidden, StrCat(what, ": there is no profile ", path,
                                           " on this node; an administrator puts it there"));
  }
  return Message().Number(1, 2).Text(2, path);
}

Message AppArmor(const node::SecurityProfile& profile) {
  using Kind = node::SecurityProfile::Kind;
  if (profile.kind == Kind::kUnconfined) return Message().Number(1, 1);
  if (profile.kind == Kind::kLocalhost) return Message().Number(1, 2).Text(2, profile.name);
  return {};
}

// Names every capability of the container, so that all engines give the same, whatever their
// defaults.
Message Capabilities(node::CapabilitySet set) {
  Message out;
  if (set == node::kAllCapabilities) return out.Item(1, "ALL");
  out.Item(2, "ALL");
  for (int number = 0; number < node::kCapabilities; ++number) {
    if ((set >> number & 1) != 0) out.Item(1, node::CapabilityName(number));
  }
  return out;
}

Result<Message> Security(const ContainerPlan& plan) {
  const ContainerSpec& spec = plan.spec;
  const node::ContainerSecurity& security = spec.security;
  if (security.unmasked_proc && !security.privileged) {
    return Refuse(
        spec, "securityContext.procMount: Unmasked",
        "only a pod with a user namespace may see all of /proc, and this node gives none");
  }
  if (spec.strict_groups && !plan.engine.status.strict_groups) {
    return Refuse(spec, "supplementalGroupsPolicy: Strict",
                  StrCat(plan.engine.version.name, " ", plan.engine.version.version,
                         " gives a user the groups of the image too"));
  }
  SWELL_ASSIGN_OR_RETURN(const Message profile, Profile(plan));
  Message out;
  out.Add(1, Capabilities(security.capabilities)).Bool(2, security.privileged);
  out.Add(3, Namespaces(plan.pod, plan.target_id, false));
  if (spec.run_as_user) out.Add(5, Boxed(*spec.run_as_user));
  out.Bool(7, spec.read_only_root);
  std::vector<int64_t> groups = spec.supplemental_groups;
  if (plan.pod.spec.fs_group) groups.push_back(*plan.pod.spec.fs_group);
  out.Packed(8, groups);
  out.Bool(11, security.no_new_privileges);
  if (spec.run_as_group) out.Add(12, Boxed(*spec.run_as_group));
  if (!security.privileged) {
    for (const char* path : kMasked) out.Item(13, path);
    for (const char* path : kReadOnly) out.Item(14, path);
  }
  out.Add(15, profile);
  if (security.app_armor.asked_for) out.Add(16, AppArmor(security.app_armor));
  out.Number(17, spec.strict_groups ? 1 : 0);
  return out;
}

}  // namespace

Message ResourcesOf(const node::CpuAndMemory& amounts) {
  Message out;
  if (amounts.cpu_limit_milli > 0) {
    out.Number(1, kCpuPeriodUs).Number(2, amounts.cpu_limit_milli * kCpuPeriodUs / 1000);
  }
  out.Number(3, std::max(kSharesMin, amounts.cpu_request_milli * kSharesOfCpu / 1000));
  out.Number(4, amounts.memory_limit_bytes);
  return out;
}

Message FilterByInstance(uint32_t labels_field, const std::string& instance) {
  return Message().Add(1, Message().Texts(labels_field, {{kInstanceLabel, instance}}));
}

Status CheckSandbox(const node::SandboxSpec& spec) {
  if (spec.security.host_users == false) {
    return Status(Code::kNotAcceptable,
                  "spec.hostUsers: false: containers of this node's engine have the machine's "
                  "user ids; `--runtime process` gives pods their own");
  }
  if (spec.host_network && !spec.security.sysctls.empty()) {
    return Status(Code::kNotAcceptable,
                  "securityContext.sysctls: the pod shares the network of this node");
  }
  return Status::Ok();
}

Status CheckHostPaths(const ProcessPod& pod, const std::string& data_dir) {
  const node::PodSecurity& security = pod.spec.security;
  // Only users who may have the machine's user ids may ask for these.
  const bool may = security.host_users == true || security.privileged || security.host_pid ||
                   security.host_ipc || pod.spec.host_network;
  for (const node::VolumeSpec& volume : pod.spec.volumes) {
    const auto made = pod.volumes.find(volume.name);
    if (may || made == pod.volumes.end() || !made->second.of_host || volume.of_administrator) {
      continue;
    }
    const std::string what = StrCat("spec.volumes[", volume.name, "].hostPath: ");
    if (!security.never_root || security.ids_chosen) {
      return Status(Code::kNotAcceptable,
                    what +
                        "containers of this node's engine have the machine's user ids: the pod "
                        "must run as its author's own user, who is not root, or have "
                        "hostUsers: true");
    }
    const std::string& path = made->second.path;
    if (process::IsUnder(path, data_dir) || process::IsUnder(data_dir, path)) {
      return Status(Code::kNotAcceptable, what + "it shows the data of swell itself");
    }
  }
  return Status::Ok();
}

Message SandboxConfig(const ProcessPod& pod, const std::string& instance, int attempt) {
  const node::PodSecurity& security = pod.spec.security;
  Message linux_security;
  linux_security.Add(1, Namespaces(pod, "", true));
  linux_security.Bool(6, security.privileged);
  // No seccomp profile by name: the process that holds the namespaces has the engine's default.
  linux_security.Add(9, Message());
  Message linux_config;
  linux_config.Add(2, linux_security);
  linux_config.Texts(3, {security.sysctls.begin(), security.sysctls.end()});
  Message config;
  config.Add(1, Metadata(pod, attempt));
  if (!pod.spec.host_network) config.Text(2, pod.spec.hostname);
  config.Text(3, pod.dir + "/logs");
  config.Texts(6, LabelsOf(pod, instance));
  config.Texts(7, pod.spec.annotations);
  config.Add(8, linux_config);
  return config;
}

Result<Message> ContainerConfig(const ContainerPlan& plan) {
  const ContainerSpec& spec = plan.spec;
  SWELL_ASSIGN_OR_RETURN(const Message security, Security(plan));
  Env env = MakeEnv(plan.pod, spec);
  Message devices;  // its fields are the config's own
  SWELL_RETURN_IF_ERROR(AddGpus(plan, env, devices));
  Message mounts;
  SWELL_RETURN_IF_ERROR(AddMounts(plan, spec.run_as_user.value_or(0) != 0, mounts));
  Message config;
  config.Add(1, Message().Text(1, spec.ref.name).Number(2, spec.ref.attempt));
  config.Add(2, Message().Text(1, spec.image_handle).Text(18, spec.image));
  for (const std::string& word : spec.command) config.Item(3, word);
  for (const std::string& word : spec.args) config.Item(4, word);
  config.Text(5, spec.working_dir);
  for (const auto& [name, value] : env) config.Add(6, Message().Text(1, name).Text(2, value));
  config.Join(mounts).Join(devices);
  Texts labels = LabelsOf(plan.pod, plan.instance);
  labels[kContainerLabel] = spec.ref.name;
  config.Texts(9, labels);
  Texts annotations{{"io.kubernetes.container.restartCount", std::to_string(spec.ref.attempt)}};
  if (!spec.stop_signal.empty()) annotations[kSignalAnnotation] = spec.stop_signal;
  config.Texts(10, annotations);
  config.Text(11, StrCat(spec.ref.name, "/", spec.ref.attempt, ".log"));
  config.Bool(12, spec.open_stdin).Bool(13, spec.stdin_once).Bool(14, spec.tty);
  Message resources =
      ResourcesOf({spec.cpu_request_milli, spec.cpu_limit_milli, spec.memory_limit_bytes});
  resources.Number(5, process::OomScoreOf(spec));
  config.Add(15, Message().Add(1, resources).Add(2, security));
  return config;
}

Status CheckNonRoot(const ProcessPod& pod, const ContainerSpec& spec, const ImageInfo& image) {
  if (!spec.run_as_non_root) return Status::Ok();
  const std::string who =
      StrCat(" (pod: ", Quote(StrCat(pod.spec.name, "_", pod.spec.ns, "(", pod.spec.pod_uid, ")")),
             ", container: ", spec.ref.name, ")");
  std::string why;
  if (spec.run_as_user) {
    if (*spec.run_as_user == 0) why = "container's runAsUser breaks non-root policy";
  } else if (!image.user.empty()) {
    why = StrCat("container has runAsNonRoot and image has non-numeric user (", image.user,
                 "), cannot verify user is non-root");
  } else if (image.uid.value_or(0) == 0) {
    why = "container has runAsNonRoot and image will run as root";
  }
  return why.empty() ? Status::Ok() : Status(Code::kForbidden, why + who);
}

void ReleaseSubPaths(const std::string& data_dir, const std::string& uid) {
  const std::string dir = SubPathsDir(data_dir, uid);
  const auto names = ListDir(dir);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const std::string path = StrCat(dir, "/", name);
    ::umount2(path.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
    // Never what is in it, which is the volume's if it is still mounted.
    if (::rmdir(path.c_str()) != 0) ::unlink(path.c_str());
  }
  ::rmdir(dir.c_str());
}

Message PullRequest(const std::string& image, const std::optional<images::Credential>& credential) {
  Message out;
  out.Add(1, Message().Text(1, image));
  if (!credential) return out;
  // Without the registry's address, which engines compare with the host that they are about to ask
  // (registry-1.docker.io for docker.io): the credential was chosen for this image.
  return out.Add(2, Message()
                        .Text(1, credential->user)
                        .Text(2, credential->password)
                        .Text(5, credential->identity_token));
}

}  // namespace swell::cri
