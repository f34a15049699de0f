#include "kube/process/shim_spec_builder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/strings.h"
#include "kube/images/users.h"
#include "kube/node/spec/pod_spec.h"
#include "kube/process/files/cdi.h"
#include "kube/process/files/volumes.h"
#include "kube/process/left_state.h"
#include "kube/process/machine/gpu_nodes.h"
#include "kube/process/machine/virtual_smi.h"
#include "kube/process/shim/beneath.h"
#include "kube/process/shim/id_map.h"

namespace swell::process {
namespace {

using node::ContainerSpec;

constexpr std::string_view kDefaultPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

void SetEnv(std::vector<std::pair<std::string, std::string>>& env,
            const std::string& name,
            const std::string& value) {
  for (auto& item : env) {
    if (item.first == name) {
      item.second = value;
      return;
    }
  }
  env.emplace_back(name, value);
}

std::string_view GetEnv(const std::vector<std::pair<std::string, std::string>>& env,
                        std::string_view name) {
  for (const auto& item : env) {
    if (item.first == name) return item.second;
  }
  return {};
}

std::vector<std::string> MakeEnv(const ShimDefaults& defaults,
                                 const ProcessPod& pod,
                                 const ContainerSpec& spec,
                                 const ImageEntry& image,
                                 const std::string& home) {
  std::vector<std::pair<std::string, std::string>> env;
  std::string path = Join(image.path, ":");
  if (!path.empty()) path += ":";
  SetEnv(env, "PATH", path + std::string(kDefaultPath));
  SetEnv(env, "HOME", home);
  SetEnv(env, "HOSTNAME", pod.spec.hostname);
  if (spec.tty) SetEnv(env, "TERM", "xterm");
  for (const auto& [name, value] : image.env) SetEnv(env, name, value);
  std::string sdk(GetEnv(env, "PYTHONPATH"));
  for (const auto& [name, value] : spec.env) {
    bool both = name == "PYTHONPATH" && !sdk.empty() && !value.empty();
    SetEnv(env, name, both ? StrCat(value, ":", sdk) : value);
  }
  bool mounted = defaults.support.isolation != Isolation::kNone;
  std::string own = mounted ? std::string(kOwnDir) : pod.dir + "/run";
  SetEnv(env, "SWELL_NOTICE_FILE", own + "/notice/notice.json");
  SetEnv(env, "SWELL_REPORT_FILE", own + "/report/report.json");
  // The node persists copies only to this folder, which it made itself.
  if (GetEnv(env, "SWELL_CHECKPOINT_DIR").empty()) {
    const std::string persist = mounted ? PersistFileOf(pod, spec.mounts) : "";
    if (!persist.empty()) SetEnv(env, "SWELL_PERSIST_FILE", StrCat(own, "/report/", persist));
    SetEnv(env, "SWELL_CHECKPOINT_DIR",
           mounted ? StrCat(kOwnDir, "/checkpoints")
                   : StrCat(defaults.store.data_dir(), "/checkpoints/", pod.spec.checkpoint_key));
  }
  SetEnv(env, "SWELL_TERMINATION_LOG",
         mounted ? spec.termination_path : pod.ContainerDir(spec.ref) + "/termination-log");
  std::vector<std::string> out;
  out.reserve(env.size());
  for (const auto& [name, value] : env) out.push_back(StrCat(name, "=", value));
  return out;
}

// "/a//b/../c/" → "/a/c". While the root is built the machine's files are in it: a path that goes
// up again must not reach them.
std::string WithoutDots(std::string_view path) {
  std::vector<std::string> steps;
  for (std::string_view step : Split(path, '/')) {
    if (step.empty() || step == ".") continue;
    if (step != "..") {
      steps.emplace_back(step);
    } else if (!steps.empty()) {
      steps.pop_back();
    }
  }
  return "/" + Join(steps, "/");
}

void Bind(ShimSpec& out,
          std::string source,
          std::string_view target,
          bool read_only,
          ShimMount::Owners owners = ShimMount::Owners::kPod) {
  out.mounts.push_back(
      {ShimMount::Kind::kBind, std::move(source), WithoutDots(target), read_only, 0, {}, owners});
}

// Files and directories that every container has of the agent.
void AddOwnMounts(const ShimDefaults& defaults,
                  const ProcessPod& pod,
                  const ContainerSpec& spec,
                  const std::string& checkpoints,
                  ShimSpec& out) {
  for (const char* file : {"hosts", "hostname", "resolv.conf"}) {
    Bind(out, StrCat(pod.dir, "/etc/", file), StrCat("/etc/", file), false);
  }
  const std::string shm =
      pod.spec.security.host_ipc ? "/dev/shm" : defaults.store.SharedMemoryDir(pod.spec.pod_uid);
  const auto owners = pod.own_users ? ShimMount::Owners::kMade : ShimMount::Owners::kPod;
  if (FileExists(shm)) Bind(out, shm, "/dev/shm", false, owners);
  Bind(out, pod.dir + "/run/notice", StrCat(kOwnDir, "/notice"), true);
  Bind(out, pod.dir + "/run/report", StrCat(kOwnDir, "/report"), false);
  Bind(out, checkpoints, StrCat(kOwnDir, "/checkpoints"), false);
  Bind(out, pod.ContainerDir(spec.ref) + "/termination-log", spec.termination_path, false);
  if (!HasVirtualGpus(spec)) return;
  const std::string gpu = pod.ContainerDir(spec.ref) + "/gpu";
  Bind(out, gpu, std::string(kGpuDir), true, ShimMount::Owners::kNobody);
  Bind(out, gpu + "/nvidia-smi", std::string(kSmiPath), true, ShimMount::Owners::kNobody);
}

void AddImageFiles(const ImageEntry& image, ShimSpec& out) {
  for (const ImageFile& file : image.files) {
    // A file that a built-in entry names may not be installed; it is missed when it is used.
    if (!FileExists(file.host)) continue;
    Bind(out, file.host, file.path, file.read_only,
         file.read_only ? ShimMount::Owners::kNobody : ShimMount::Owners::kPod);
  }
}

Status AddVolumes(const ProcessPod& pod, const ContainerSpec& spec, ShimSpec& out) {
  std::vector<node::MountSpec> mounts = spec.mounts;
  // Outer paths first, so that a volume inside another is not covered by it.
  for (node::MountSpec& mount : mounts) mount.container_path = WithoutDots(mount.container_path);
  std::stable_sort(mounts.begin(), mounts.end(), [](const auto& a, const auto& b) {
    return std::count(a.container_path.begin(), a.container_path.end(), '/') <
           std::count(b.container_path.begin(), b.container_path.end(), '/');
  });
  for (const node::MountSpec& mount : mounts) {
    auto volume = pod.volumes.find(mount.volume);
    if (volume == pod.volumes.end()) {
      return Status(Code::kInvalid,
                    StrCat("volumeMounts: the pod has no volume ", Quote(mount.volume)));
    }
    const PodVolume& source = volume->second;
    Bind(out, source.path, mount.container_path, mount.read_only, source.owners);
    out.mounts.back().sub_path = mount.sub_path;
    out.mounts.back().of_host = source.of_host;
  }
  return Status::Ok();
}

// Without a root of its own a container shows no volume at all.
Status CheckNoVolumes(const ShimDefaults& defaults, const ContainerSpec& spec) {
  for (const node::MountSpec& mount : spec.mounts) {
    // Every pod gets credentials: they are not a reason to reject it.
    if (mount.container_path.starts_with("/var/run/secrets/")) continue;
    return Status(Code::kInvalid, StrCat("volume ", Quote(mount.volume), " cannot be mounted at ",
                                         mount.container_path, ": ", defaults.support.Limits()));
  }
  return Status::Ok();
}

Status AddMounts(const ShimDefaults& defaults,
                 const ProcessPod& pod,
                 const ContainerSpec& spec,
                 const ImageEntry& image,
                 ShimSpec& out) {
  SWELL_ASSIGN_OR_RETURN(const std::string checkpoints,
                         defaults.store.MakeCheckpointDir(pod, spec.run_as_user.value_or(0) != 0));
  if (defaults.support.isolation == Isolation::kNone) return CheckNoVolumes(defaults, spec);
  AddOwnMounts(defaults, pod, spec, checkpoints, out);
  AddImageFiles(image, out);
  return AddVolumes(pod, spec, out);
}

// Without root only the own user is mapped: no process can run as another one.
Status CheckOwnUser(const ContainerSpec& spec) {
  auto check = [](std::string_view field, std::optional<int64_t> wanted, int64_t own) {
    if (!wanted || *wanted == 0 || *wanted == own) return Status::Ok();
    return Status(Code::kInvalid, StrCat("securityContext.", field, ": ", *wanted,
                                         ": this node was not started by root: its pods run as ",
                                         own, ", and nobody else"));
  };
  SWELL_RETURN_IF_ERROR(check("runAsUser", spec.run_as_user, static_cast<int64_t>(::geteuid())));
  return check("runAsGroup", spec.run_as_group, static_cast<int64_t>(::getegid()));
}

std::string PodText(const ProcessPod& pod, const ContainerSpec& spec) {
  return StrCat(
      " (pod: ", Quote(StrCat(pod.spec.name, "_", pod.spec.ns, "(", pod.spec.pod_uid, ")")),
      ", container: ", spec.ref.name, ")");
}

Status SetUser(const ProcessPod& pod, const ContainerSpec& spec, ShimSpec& out) {
  out.uid = spec.run_as_user;
  out.gid = spec.run_as_group ? spec.run_as_group : spec.run_as_user;
  out.groups = spec.supplemental_groups;
  if (pod.spec.fs_group) out.groups.push_back(*pod.spec.fs_group);
  const bool any_user =
      out.isolation == Isolation::kFull || (out.isolation == Isolation::kNone && ::geteuid() == 0);
  if (!any_user) {
    SWELL_RETURN_IF_ERROR(CheckOwnUser(spec));
    out.uid.reset();
    out.gid.reset();
    out.groups.clear();
  }
  if (spec.run_as_non_root && out.uid.value_or(static_cast<int64_t>(::geteuid())) == 0) {
    return Status(Code::kForbidden,
                  StrCat(spec.run_as_user ? "container's runAsUser breaks non-root policy"
                                          : "container has runAsNonRoot and image will run as root",
                         PodText(pod, spec)));
  }
  return Status::Ok();
}

// What a container starts as: an entry of the catalogue, or a stored image in the same terms.
struct Root {
  ImageEntry entry;
  std::string home = "/root";
};

// A pod's numbers count before the image's user, and both before root.
Status UseImageUser(const ProcessPod& pod,
                    const images::ImageFiles& files,
                    ContainerSpec& spec,
                    std::string& home) {
  const std::string wanted =
      spec.run_as_user ? std::to_string(*spec.run_as_user) : files.config.user;
  auto user = images::FindImageUser(files.layers, wanted);
  if (!user.ok()) return user.status().WithContext(StrCat("image ", Quote(spec.image)));
  if (spec.run_as_non_root && user->by_name) {
    return Status(Code::kForbidden,
                  StrCat("container has runAsNonRoot and image has non-numeric user (", wanted,
                         "), cannot verify user is non-root", PodText(pod, spec)));
  }
  if (spec.run_as_non_root && !spec.run_as_user && user->uid == 0) {
    return Status(Code::kForbidden, StrCat("container has runAsNonRoot and image will run as root",
                                           PodText(pod, spec)));
  }
  spec.run_as_user = user->uid;
  if (!spec.run_as_group) spec.run_as_group = user->gid;
  const int64_t highest = std::max(*spec.run_as_user, *spec.run_as_group);
  if (pod.own_users && highest >= kIdsOfPod) {
    return Status(Code::kForbidden,
                  StrCat("image ", Quote(spec.image), ": its user has the id ", highest,
                         "; a pod has 0 to ", kIdsOfPod - 1,
                         ": name another user by runAsUser and runAsGroup", PodText(pod, spec)));
  }
  if (!spec.strict_groups) {
    spec.supplemental_groups.insert(spec.supplemental_groups.end(), user->groups.begin(),
                                    user->groups.end());
  }
  home = user->home;
  return Status::Ok();
}

Result<Root> UseImage(const ShimDefaults& defaults,
                      const ProcessPod& pod,
                      ContainerSpec& spec,
                      ShimSpec& out) {
  if (out.isolation == Isolation::kNone) {
    return Status(Code::kInvalid, StrCat("image ", Quote(spec.image),
                                         " cannot be run: ", defaults.support.Limits()));
  }
  SWELL_ASSIGN_OR_RETURN(images::ImageFiles files, defaults.images.FilesOf(spec.image_handle));
  Root root;
  SWELL_RETURN_IF_ERROR(UseImageUser(pod, files, spec, root.home));
  root.entry.entrypoint = std::move(files.config.entrypoint);
  root.entry.args = std::move(files.config.cmd);
  root.entry.env = std::move(files.config.env);
  root.entry.working_dir = std::move(files.config.working_dir);
  out.has_image = true;
  out.image_layers = std::move(files.layers);
  out.image_volumes = std::move(files.config.volumes);
  if (!files.config.stop_signal.empty()) {
    out.stop_signal = images::SignalNumber(files.config.stop_signal);
  }
  return root;
}

Status Refuse(const ContainerSpec& spec, std::string_view field, std::string_view why) {
  return Status(Code::kForbidden,
                StrCat("container ", Quote(spec.ref.name), ": securityContext.", field, ": ", why));
}

Status CheckPossible(const ShimDefaults& defaults,
                     const ContainerSpec& spec,
                     const PodNamespaces& namespaces) {
  const node::ContainerSecurity& security = spec.security;
  const bool root = defaults.support.isolation == Isolation::kFull;
  constexpr std::string_view kNoRoot = "this node was not started by root, or has no namespaces";
  if (security.privileged && !root) return Refuse(spec, "privileged: true", kNoRoot);
  const node::CapabilitySet more = security.capabilities & ~node::DefaultCapabilities();
  if (more != 0 && !root) return Refuse(spec, "capabilities.add", kNoRoot);
  if (security.unmasked_proc && namespaces.users.empty()) {
    return Refuse(spec, "procMount: Unmasked",
                  "only a pod with a user namespace may see all of /proc, and this one has none");
  }
  if (security.seccomp.asked_for && !security.privileged && !defaults.support.seccomp &&
      security.seccomp.kind != node::SecurityProfile::Kind::kUnconfined) {
    return Refuse(spec, "seccompProfile", "this machine's kernel cannot filter system calls");
  }
  if (security.app_armor.kind == node::SecurityProfile::Kind::kLocalhost) {
    auto enabled = ReadFile("/sys/module/apparmor/parameters/enabled", 16);
    if (!enabled.ok() || !enabled->starts_with('Y')) {
      return Refuse(spec, "appArmorProfile", "this machine has no AppArmor");
    }
  }
  return Status::Ok();
}

// By the machine's CDI files where it has some, else by what the driver says.
Status GiveDevices(const ContainerSpec& spec, ShimSpec& out) {
  const std::vector<std::string> gpus = RealGpus(spec.gpus);
  if (gpus.empty()) return Status::Ok();
  SWELL_ASSIGN_OR_RETURN(std::optional<CdiEdits> edits,
                         ReadCdiEdits(CdiDirs(), node::kGpuResource, gpus));
  if (!edits || out.isolation != Isolation::kFull) {
    for (const std::string& node : GpuNodes(gpus)) out.devices.emplace_back(node, node);
    return Status::Ok();
  }
  for (const auto& [name, value] : edits->env) {
    // Which devices are its own, the agent says.
    if (name == "NVIDIA_VISIBLE_DEVICES") continue;
    std::erase_if(out.env,
                  [&name = name](const auto& item) { return item.starts_with(name + "="); });
    out.env.push_back(StrCat(name, "=", value));
  }
  out.devices = std::move(edits->nodes);
  out.mounts.insert(out.mounts.end(), edits->mounts.begin(), edits->mounts.end());
  out.hooks = std::move(edits->hooks);
  out.groups.insert(out.groups.end(), edits->groups.begin(), edits->groups.end());
  return Status::Ok();
}

Status SetSecurity(const ShimDefaults& defaults,
                   const ProcessPod& pod,
                   const ContainerSpec& spec,
                   const PodNamespaces& namespaces,
                   ShimSpec& out) {
  SWELL_RETURN_IF_ERROR(CheckPossible(defaults, spec, namespaces));
  const node::ContainerSecurity& security = spec.security;
  out.confined = true;
  out.user_namespace = namespaces.users;
  out.first_id = namespaces.first_id;
  out.capabilities = security.capabilities;
  // With the machine's ids, a program of an image that becomes another user would be that user.
  const bool may_change_user = !namespaces.users.empty() || !pod.spec.security.never_root ||
                               security.privileged || pod.spec.security.host_users == true;
  out.no_new_privileges = security.no_new_privileges || !may_change_user;
  out.app_armor = security.app_armor.name;
  out.privileged = security.privileged;
  out.unmasked_proc = security.unmasked_proc;
  out.host_pid = pod.spec.security.host_pid;
  out.host_ipc = pod.spec.security.host_ipc;
  if (!out.netns.empty()) out.sysctls = pod.spec.security.sysctls;
  SWELL_RETURN_IF_ERROR(GiveDevices(spec, out));
  if (!defaults.support.seccomp) return Status::Ok();
  // On the machine's network a pod's program could take the ports of the machine's own.
  const bool machine_ports = !namespaces.net.empty() && out.netns.empty();
  SWELL_ASSIGN_OR_RETURN(
      out.seccomp_file,
      defaults.seccomp.FileFor(security, machine_ports ? Ports::kClosed : Ports::kMayOpen));
  return Status::Ok();
}

Status SetCommand(const ContainerSpec& spec, const ImageEntry& image, ShimSpec& out) {
  out.argv = spec.command.empty() ? image.entrypoint : spec.command;
  const std::vector<std::string>& args =
      spec.args.empty() && spec.command.empty() ? image.args : spec.args;
  out.argv.insert(out.argv.end(), args.begin(), args.end());
  if (out.argv.empty()) {
    return Status(Code::kInvalid, StrCat("image ", Quote(spec.image),
                                         ": the container has no command, and neither has the ",
                                         out.has_image ? "image" : "catalogue's entry"));
  }
  return Status::Ok();
}

// A debug container sees the processes of the one that it names.
Status SetTarget(const ProcessPod& pod, const ContainerSpec& spec, ShimSpec& out) {
  if (spec.target.empty() || out.isolation != Isolation::kFull) return Status::Ok();
  const auto target = pod.containers.find(spec.target);
  if (target == pod.containers.end() || !target->second->running) {
    return Status(Code::kInvalid,
                  StrCat("the target container ", Quote(spec.target), " does not run"));
  }
  out.beside = {target->second->state.init_pid, target->second->state.init_start};
  return Status::Ok();
}

}  // namespace

int OomScoreOf(const ContainerSpec& spec) {
  constexpr int kFirst = 1000, kLast = 2;
  if (spec.memory_request_bytes <= 0) return kFirst;
  const double machine =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  const double part = static_cast<double>(spec.memory_request_bytes) / std::max(machine, 1.0);
  return std::clamp(static_cast<int>(kFirst * (1 - std::min(part, 1.0))), kLast, kFirst - 1);
}

Result<ShimSpec> MakeShimSpec(const ShimDefaults& defaults,
                              const ProcessPod& pod,
                              const ContainerSpec& asked,
                              const PodNamespaces& given) {
  const Isolation isolation = defaults.support.isolation;
  ContainerSpec spec = asked;
  ShimSpec out;
  out.isolation = isolation;
  Root root;
  if (spec.image_handle.empty()) {
    SWELL_ASSIGN_OR_RETURN(root.entry, defaults.catalogue.StandInFor(spec.image));
    // Root's home is closed to other users, and the machine's people have theirs outside.
    if (spec.run_as_user.value_or(0) != 0) root.home = "/tmp";
  } else {
    SWELL_ASSIGN_OR_RETURN(root, UseImage(defaults, pod, spec, out));
  }
  if (!spec.stop_signal.empty()) out.stop_signal = images::SignalNumber(spec.stop_signal);
  const ImageEntry& image = root.entry;
  SWELL_RETURN_IF_ERROR(SetCommand(spec, image, out));
  out.env = MakeEnv(defaults, pod, spec, image, root.home);
  out.cwd = spec.working_dir.empty() ? image.working_dir : spec.working_dir;
  SWELL_RETURN_IF_ERROR(SetUser(pod, spec, out));
  SWELL_RETURN_IF_ERROR(SetTarget(pod, spec, out));
  out.hostname = pod.spec.hostname;
  // What the catalogue opens, it opens to the programs that it names itself.
  const bool as_catalogued = spec.command.empty();
  if (!image.host_network || !as_catalogued) out.netns = given.net;
  out.host_tmp = image.host_tmp && as_catalogued;
  out.hidden = {defaults.store.data_dir(), defaults.store.MemoryRoot()};
  SWELL_RETURN_IF_ERROR(SetSecurity(defaults, pod, spec, given, out));
  out.read_only_root = spec.read_only_root;
  SWELL_RETURN_IF_ERROR(AddMounts(defaults, pod, spec, image, out));
  FillCgroups(defaults.support.cgroups, CgroupNameOf(spec.ref), spec.cpu_request_milli,
              spec.cpu_limit_milli, spec.memory_limit_bytes, out);
  out.oom_score = OomScoreOf(spec);
  if (isolation == Isolation::kFull) {
    FillDeviceGroup(defaults.support.cgroups, CgroupNameOf(spec.ref), out);
  }
  if (spec.whole_pod) {
    PutBelowPod(defaults.support.cgroups, spec.ref.pod_uid, *spec.whole_pod, out);
  }
  out.log_path = pod.LogPath(spec.ref);
  out.log_bytes_max = defaults.log_bytes_max;
  out.log_files_max = defaults.log_files_max;
  out.open_stdin = spec.open_stdin;
  out.stdin_once = spec.stdin_once;
  out.tty = spec.tty;
  return out;
}

}  // namespace swell::process
