#include "kube/process/pod_store.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/api/objects/failure_class.h"
#include "kube/process/files/volumes.h"
#include "kube/process/shim/beneath.h"
#include "kube/process/shim/mounts.h"
#include "kube/process/streams/log_reader.h"

namespace swell::process {
namespace {

using node::ContainerExit;
using node::ContainerRef;

constexpr int kExitUnknown = 137;
constexpr size_t kTerminationBytes = 4096;
constexpr size_t kLogTailBytes = 2048;
constexpr int64_t kLogTailLines = 80;
// As many as `swell logs` shows.
constexpr int kStartsKept = 5;
constexpr size_t kStateBytesMax = 64 << 10;

// Written in place: containers have this very file mounted.
Status RewriteFile(const std::string& path, std::string_view bytes) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.valid()) return ErrnoStatus(errno, "open " + path);
  const ssize_t n = ::pwrite(fd.get(), bytes.data(), bytes.size(), 0);
  if (n >= 0 && n != static_cast<ssize_t>(bytes.size())) errno = ENOSPC;
  if (n == static_cast<ssize_t>(bytes.size()) && ::ftruncate(fd.get(), n) == 0) {
    return Status::Ok();
  }
  return ErrnoStatus(errno, "write " + path);
}

Status InitPodDir(const std::string& dir) {
  SWELL_RETURN_IF_ERROR(MakeDirs(dir, 0711));
  for (const char* part :
       {"/etc", "/run", "/run/notice", "/run/report", "/volumes", "/containers", "/logs"}) {
    SWELL_RETURN_IF_ERROR(MakeDirs(dir + part));
  }
  ::chmod((dir + "/run/report").c_str(), 01777);
  for (const char* file : {"/etc/hostname", "/etc/hosts", "/etc/resolv.conf"}) {
    SWELL_RETURN_IF_ERROR(RewriteFile(dir + file, ""));
  }
  return PrepareReplace(dir + "/pod.json", 0600);
}

Status InitContainerDir(const std::string& dir, Isolation isolation) {
  std::vector<std::string> parts{""};
  if (isolation != Isolation::kNone) parts.insert(parts.end(), {"/root", "/tmp"});
  if (isolation == Isolation::kFull) parts.insert(parts.end(), {"/upper", "/workdir"});
  for (const std::string& part : parts) SWELL_RETURN_IF_ERROR(MakeDirs(dir + part));
  for (const char* file : {"/spec.json", "/state.json", "/exit.json"}) {
    SWELL_RETURN_IF_ERROR(PrepareReplace(dir + file, 0600));
  }
  return ReplaceFile(dir + "/termination-log", "", 0666);
}

ReadyDirs::Options ReadyDirsOf(const PodStore::Options& options,
                               const char* name,
                               std::function<Status(const std::string&)> make) {
  return {.prefix = StrCat(options.data_dir, "/ready/", name),
          .ready = options.ready_dirs,
          .make = std::move(make),
          .post = options.post};
}

// An older version wrote the path alone.
PodVolume VolumeFromJson(const json::Value& value) {
  if (value.is_string()) return {std::string(json::View(value.get_string()))};
  PodVolume volume{std::string(json::GetString(value, {"path"}))};
  volume.owners = OwnersFromJson(
      json::GetInt(value, {"owners"}, static_cast<int64_t>(ShimMount::Owners::kPod)));
  volume.of_host = json::GetBool(value, {"ofHost"});
  volume.scratch = json::GetBool(value, {"scratch"});
  return volume;
}

// A path that the pod itself names gives it no more than its own rights, unless it has those of the
// machine's root.
HostPathMaker MakerOf(const node::VolumeSpec& volume, const node::SandboxSpec& pod) {
  const node::PodSecurity& security = pod.security;
  const bool machines = security.host_users == true || security.privileged || security.host_pid ||
                        security.host_ipc || pod.host_network;
  return volume.declared || volume.of_administrator || machines ? HostPathMaker::kSwell
                                                                : HostPathMaker::kNobody;
}

std::string ReadStart(const std::string& path, size_t bytes) {
  std::string text(bytes, '\0');
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t n = fd.valid() ? ::read(fd.get(), text.data(), text.size()) : 0;
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

}  // namespace

bool ProcessPod::running() const {
  return std::any_of(containers.begin(), containers.end(),
                     [](const auto& entry) { return entry.second->running; });
}

std::string ProcessPod::ContainerDir(const ContainerRef& ref) const {
  return StrCat(dir, "/containers/", ref.name, "/", ref.attempt);
}

std::string ProcessPod::LogPath(const ContainerRef& ref) const {
  return StrCat(dir, "/logs/", ref.name, "/", ref.attempt, ".log");
}

std::string ContainerIdOf(const ContainerRef& ref) {
  return StrCat("process://", ref.pod_uid, "-", ref.name, "-", ref.attempt);
}

std::string CgroupNameOf(const ContainerRef& ref) {
  return StrCat(ref.pod_uid, ".", ref.name, ".", ref.attempt);
}

// As the kubelet takes it, but without torchrun's report about its processes, which would leave no
// room for what they said themselves.
std::string EndOfLog(const std::string& path) {
  std::string tail = LogTail(path, kLogTailLines, kLogTailBytes);
  if (!api::HasLauncherReport(tail)) return tail;
  constexpr int64_t kLinesMax = 400;
  constexpr size_t kBytesMax = 64 << 10;
  return api::BeforeLauncherReport(LogTail(path, kLinesMax, kBytesMax), kLogTailBytes);
}

ContainerExit ReadExit(const ProcessContainer& container, WallTime now) {
  ContainerExit exit;
  exit.started = container.started.started;
  exit.container_id = container.started.container_id;
  auto text = ReadFile(container.dir + "/exit.json", kStateBytesMax);
  auto value = text.ok() ? json::Parse(*text) : Result<json::Value>(text.status());
  auto known = value.ok() ? ShimExit::FromJson(*value) : Result<ShimExit>(value.status());
  if (known.ok()) {
    exit.code = known->code;
    exit.signal = known->signal;
    exit.oom_killed = known->oom;
    exit.started = {known->started_ns};
    exit.finished = {known->finished_ns};
  } else {
    // The shim was killed, or the machine went down: the container went with it.
    exit.code = kExitUnknown;
    exit.signal = SIGKILL;
    exit.reason = node::kStatusUnknown;
    exit.finished = now;
  }
  ReadLastWords(container, exit);
  return exit;
}

void ReadLastWords(const ProcessContainer& container, ContainerExit& exit) {
  exit.termination_message = ReadStart(container.dir + "/termination-log", kTerminationBytes);
  if (exit.code != 0) exit.log_tail = EndOfLog(container.log_path);
}

PodStore::PodStore(Options options)
    : options_(std::move(options)),
      kept_logs_(options_.data_dir + "/kept-logs", TrashDir(), remover_),
      pod_dirs_(ReadyDirsOf(options_, "pod-", InitPodDir)),
      container_dirs_(ReadyDirsOf(
          options_, "container-", [isolation = options_.isolation](const std::string& dir) {
            return InitContainerDir(dir, isolation);
          })) {}

std::string PodStore::PodDir(const std::string& uid) const {
  return StrCat(options_.data_dir, "/pods/", uid);
}

std::string PodStore::MemoryDir(const std::string& uid) const {
  return StrCat(MemoryRoot(), "/", uid);
}

std::string PodStore::ReadyDir() const { return options_.data_dir + "/ready"; }

std::string PodStore::TrashDir() const { return options_.data_dir + "/removed"; }

std::string PodStore::MemoryTrashDir() const { return MemoryDir("removed"); }

Result<std::string> PodStore::LogPath(const ContainerRef& ref, const std::string& kept_of) const {
  if (!kept_of.empty()) return kept_logs_.Path(ref.pod_uid, kept_of, ref.name, ref.attempt);
  if (!IsPlainName(ref.pod_uid) || !IsPlainName(ref.name)) {
    return Status(Code::kInvalid, "container: not a usable name");
  }
  return StrCat(PodDir(ref.pod_uid), "/logs/", ref.name, "/", ref.attempt, ".log");
}

ProcessPod* PodStore::Find(const std::string& uid) const {
  auto it = pods_.find(uid);
  return it == pods_.end() ? nullptr : it->second.get();
}

ProcessContainer* PodStore::Find(const ContainerRef& ref) const {
  ProcessPod* pod = Find(ref.pod_uid);
  if (pod == nullptr) return nullptr;
  auto it = pod->containers.find(ref.name);
  if (it == pod->containers.end() || it->second->ref.attempt != ref.attempt) return nullptr;
  return it->second.get();
}

// ---- what earlier runs left ----

namespace {

bool Runs(const std::string& container_dir) {
  const Result<std::vector<std::string>> attempts = ListDir(container_dir);
  if (!attempts.ok()) return false;
  return std::any_of(attempts->begin(), attempts->end(), [&](const std::string& attempt) {
    const std::string dir = StrCat(container_dir, "/", attempt);
    const auto state = ReadShimState(dir);
    return state.ok() && state->shim_start != 0 &&
           ProcessStartTime(state->shim_pid) == state->shim_start &&
           !FileExists(dir + "/exit.json");
  });
}

}  // namespace

std::vector<std::string> RunningPods(const std::string& data_dir) {
  std::vector<std::string> out;
  const auto uids = ListDir(data_dir + "/pods");
  if (!uids.ok()) return out;
  for (const std::string& uid : *uids) {
    const std::string dir = StrCat(data_dir, "/pods/", uid), containers = dir + "/containers";
    const auto names = ListDir(containers);
    const bool runs =
        names.ok() && std::any_of(names->begin(), names->end(), [&](const auto& name) {
          return Runs(StrCat(containers, "/", name));
        });
    if (!runs) continue;
    const auto text = ReadFile(dir + "/pod.json", 4 << 20);
    const auto pod = text.ok() ? json::Parse(*text) : Result<json::Value>(text.status());
    out.push_back(pod.ok() ? StrCat(json::GetString(*pod, {"namespace"}), "/",
                                    json::GetString(*pod, {"name"}))
                           : uid);
  }
  return out;
}

Status PodStore::Start() {
  for (const char* part : {"/pods", "/volumes", "/checkpoints"}) {
    SWELL_RETURN_IF_ERROR(MakePrivateDir(options_.data_dir + part));
  }
  remover_.Empty(TrashDir());
  remover_.Empty(MemoryTrashDir());
  if (options_.keep_logs) SWELL_RETURN_IF_ERROR(kept_logs_.Start());
  // Another version may have made the ready directories.
  Status cleared = remover_.Discard(ReadyDir(), TrashDir());
  (void)cleared;
  SWELL_RETURN_IF_ERROR(MakePrivateDir(ReadyDir()));
  SWELL_ASSIGN_OR_RETURN(std::vector<std::string> uids, ListDir(options_.data_dir + "/pods"));
  for (const std::string& uid : uids) {
    const Result<std::string> text = ReadFile(PodDir(uid) + "/pod.json", 4 << 20);
    // A disk that cannot be read now says nothing of the pod, whose processes may run on.
    if (!text.ok() && text.status().code() != Code::kNotFound) return text.status();
    const Status loaded = text.ok() ? Load(uid, *text) : text.status();
    if (loaded.ok()) continue;
    SWELL_LOG_WARNING("process", "damaged pod removed", {"uid", uid}, {"error", loaded.ToString()});
    Status removed = RemoveScratch(PodDir(uid));
    (void)removed;
    DiscardMemory(uid);
  }
  return Status::Ok();
}

Status PodStore::Load(const std::string& uid, const std::string& text) {
  SWELL_ASSIGN_OR_RETURN(json::Value value, json::Parse(text));
  auto pod = std::make_unique<ProcessPod>();
  pod->dir = PodDir(uid);
  pod->spec.pod_uid = uid;
  auto read = [&value](std::string_view key) { return std::string(json::GetString(value, {key})); };
  pod->spec.ns = read("namespace");
  pod->spec.name = read("name");
  pod->spec.node = read("node");
  pod->spec.hostname = read("hostname");
  pod->spec.full_name = read("fullName");
  pod->spec.host_ip = read("hostIP");
  pod->spec.host_network = json::GetBool(value, {"hostNetwork"});
  pod->spec.checkpoint_key = read("checkpointKey");
  pod->spec.job_uid = read("jobUID");
  if (const json::Value* group = json::Find(value, {"fsGroup"}); group && group->is_int64()) {
    pod->spec.fs_group = group->get_int64();
  }
  pod->spec.security.host_pid = json::GetBool(value, {"hostPID"});
  pod->spec.security.host_ipc = json::GetBool(value, {"hostIPC"});
  for (const auto& item : json::GetObject(value, {"sysctls"})) {
    if (!item.value().is_string()) continue;
    pod->spec.security.sysctls.emplace_back(item.key(), json::View(item.value().get_string()));
  }
  pod->own_users = json::GetBool(value, {"ownUsers"});
  pod->info.ip = read("podIP");
  pod->slot = static_cast<int>(json::GetInt(value, {"slot"}));
  pod->stopped = json::GetBool(value, {"stopped"});
  for (const auto& item : json::GetObject(value, {"volumes"})) {
    pod->volumes.emplace(item.key(), VolumeFromJson(item.value()));
  }
  auto names = ListDir(pod->dir + "/containers");
  if (names.ok()) {
    for (const std::string& name : *names) LoadContainer(*pod, name);
  }
  pods_.emplace(uid, std::move(pod));
  return Status::Ok();
}

void PodStore::LoadContainer(ProcessPod& pod, const std::string& name) {
  auto attempts = ListDir(StrCat(pod.dir, "/containers/", name));
  if (!attempts.ok()) return;
  int64_t newest = -1;
  for (const std::string& text : *attempts) newest = std::max(newest, ParseInt(text).value_or(-1));
  if (newest < 0) return;
  auto container = std::make_unique<ProcessContainer>();
  container->ref = {pod.spec.pod_uid, name, static_cast<int>(newest)};
  container->dir = pod.ContainerDir(container->ref);
  container->log_path = pod.LogPath(container->ref);
  auto state = ReadShimState(container->dir);
  if (!state.ok()) return;
  container->state = *state;
  container->started = {ContainerIdOf(container->ref), "", {state->started_ns}};
  auto spec = ReadShimSpec(container->dir);
  if (spec.ok()) container->stop_signal = spec->stop_signal;
  pod.containers.emplace(name, std::move(container));
}

// ---- pods ----

Result<ProcessPod*> PodStore::Create(const node::SandboxSpec& spec,
                                     const std::string& resolv_conf) {
  for (const std::string* name : {&spec.pod_uid, &spec.ns, &spec.name}) {
    if (!IsPlainName(*name)) {
      return Status(Code::kInvalid, StrCat("pod: ", Quote(*name), " is not a usable name"));
    }
  }
  auto pod = std::make_unique<ProcessPod>();
  pod->spec = spec;
  pod->dir = PodDir(spec.pod_uid);
  Status made = MakeFiles(*pod, resolv_conf);
  if (!made.ok()) {
    DiscardScratch(*pod);
    Status removed = RemoveScratch(pod->dir);
    (void)removed;
    return made;
  }
  auto& added = pods_[spec.pod_uid];
  added = std::move(pod);
  return added.get();
}

Status PodStore::MakeFiles(ProcessPod& pod, const std::string& resolv_conf) {
  SWELL_RETURN_IF_ERROR(pod_dirs_.Take(pod.dir));
  // A try that failed, or an agent that was killed, left it. A second mount would hide it.
  DiscardMemory(pod.spec.pod_uid);
  for (const node::VolumeSpec& volume : pod.spec.volumes) {
    SWELL_ASSIGN_OR_RETURN(std::string path,
                           MakeVolume(volume, pod.dir, options_.data_dir, pod.spec.fs_group,
                                      MakerOf(volume, pod.spec)));
    if (volume.kind == node::VolumeSpec::Kind::kMemory) {
      // Shared by the pod's containers, so it cannot be a mount of one of them.
      path = StrCat(MemoryDir(pod.spec.pod_uid), "/", volume.name);
      if (!MakeInMemory(path, volume.size_limit_bytes).ok()) {
        path = StrCat(pod.dir, "/volumes/", volume.name);
        SWELL_RETURN_IF_ERROR(MakeDirs(path));
        ::chmod(path.c_str(), 01777);
      }
    }
    // One file that an administrator names with the machine's ids: the log of the scheduler's pod.
    const bool named_file = pod.spec.security.host_users == true && volume.host_path_type == "File";
    const bool of_host =
        volume.kind == node::VolumeSpec::Kind::kHostPath && !volume.declared && !named_file;
    const bool of_user = of_host && !volume.of_administrator;
    // An author who could have named anybody's ids gets at nobody's files by them.
    const ShimMount::Owners own =
        pod.spec.security.ids_chosen ? ShimMount::Owners::kNobody : ShimMount::Owners::kUser;
    const bool scratch = volume.kind == node::VolumeSpec::Kind::kEmptyDir ||
                         volume.kind == node::VolumeSpec::Kind::kMemory;
    pod.volumes[volume.name] = {path, of_user ? own : ShimMount::Owners::kPod, of_host, scratch};
  }
  // Without it, /dev/shm is a directory of the container's own /dev.
  Status shared = MakeInMemory(SharedMemoryDir(pod.spec.pod_uid), pod.spec.memory_limit_bytes);
  if (!shared.ok()) SWELL_LOG_WARNING("process", "no /dev/shm", {"error", shared.ToString()});
  SWELL_RETURN_IF_ERROR(RewriteFile(pod.dir + "/etc/hostname", pod.spec.hostname + "\n"));
  return RewriteFile(pod.dir + "/etc/resolv.conf", resolv_conf);
}

// Pods choose owners and modes of their files, and may make one that gives its owner's rights to
// the user who runs it: other users of the machine reach none of them. Pods have them mounted
// before they become another user; where nothing can be mounted they walk these paths.
Status PodStore::MakePrivateDir(const std::string& dir) const {
  const mode_t mode = options_.isolation == Isolation::kNone ? 0711 : 0700;
  SWELL_RETURN_IF_ERROR(MakeDirs(dir, static_cast<int>(mode)));
  struct stat info;
  if (::lstat(dir.c_str(), &info) != 0) return ErrnoStatus(errno, dir);
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid()) {
    return Status(Code::kForbidden, StrCat(dir, ": not a directory of the user who runs swell"));
  }
  // An earlier version made it for more.
  return ::chmod(dir.c_str(), mode) == 0 ? Status::Ok() : ErrnoStatus(errno, "chmod " + dir);
}

// A file system of its own where that is possible: then it has a size. 0: half of the memory.
Status PodStore::MakeInMemory(const std::string& dir, int64_t size_bytes) const {
  SWELL_RETURN_IF_ERROR(MakePrivateDir(MemoryRoot()));
  SWELL_RETURN_IF_ERROR(MakeDirs(dir, 0711));
  if (options_.isolation == Isolation::kFull) {
    const std::string size = size_bytes > 0 ? StrCat(",size=", size_bytes) : "";
    return Mount("tmpfs", dir, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777" + size);
  }
  return ::chmod(dir.c_str(), 01777) == 0 ? Status::Ok() : ErrnoStatus(errno, "chmod " + dir);
}

bool PodStore::IsInMemory(const ProcessPod& pod, const PodVolume& volume) const {
  return volume.path.starts_with(MemoryDir(pod.spec.pod_uid) + "/");
}

Status PodStore::GiveMemory(ProcessPod& pod, int64_t first_id) const {
  const auto id = static_cast<uid_t>(first_id);
  auto give = [id](const std::string& dir) {
    return ::lchown(dir.c_str(), id, id) == 0 ? Status::Ok() : ErrnoStatus(errno, "give " + dir);
  };
  for (auto& [name, volume] : pod.volumes) {
    if (!IsInMemory(pod, volume)) continue;
    SWELL_RETURN_IF_ERROR(give(volume.path));
    volume.owners = ShimMount::Owners::kMade;
  }
  const std::string shared = SharedMemoryDir(pod.spec.pod_uid);
  return FileExists(shared) ? give(shared) : Status::Ok();
}

Status PodStore::WriteHosts(const ProcessPod& pod) const {
  // The words are the kubelet's; programs tell by them whether the file is the node's own.
  std::string text = pod.spec.host_network ? "# Kubernetes-managed hosts file (host network).\n"
                                           : "# Kubernetes-managed hosts file.\n";
  text +=
      "# It has the names of the cluster's services, and is replaced when they change.\n"
      "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n";
  // The first name of a line is what a program gets that asks for the host's full name.
  std::vector<std::string> names;
  for (const std::string* name : {&pod.spec.full_name, &pod.spec.hostname, &pod.spec.name}) {
    if (name->empty() || std::find(names.begin(), names.end(), *name) != names.end()) continue;
    names.push_back(*name);
  }
  // One line for its own address, or `hostname --ip-address` says it twice.
  for (const node::HostsEntry& entry : pod.spec.hosts) {
    if (entry.ip.empty() || entry.ip != pod.info.ip) continue;
    for (const std::string& name : entry.names) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  text += StrCat(pod.info.ip, "\t", Join(names, " "));
  text += '\n';
  for (const node::HostsEntry& entry : pod.spec.hosts) {
    if (entry.ip.empty() || entry.names.empty() || entry.ip == pod.info.ip) continue;
    text += StrCat(entry.ip, "\t", Join(entry.names, "\t"), "\n");
  }
  return RewriteFile(pod.dir + "/etc/hosts", text);
}

Status PodStore::Save(const ProcessPod& pod) const {
  json::Object volumes;
  for (const auto& [name, volume] : pod.volumes) {
    volumes[name] = json::Object{{"path", volume.path},
                                 {"owners", static_cast<int64_t>(volume.owners)},
                                 {"ofHost", volume.of_host},
                                 {"scratch", volume.scratch}};
  }
  json::Object sysctls;
  for (const auto& [name, setting] : pod.spec.security.sysctls) sysctls[name] = setting;
  json::Object value{{"namespace", pod.spec.ns},
                     {"name", pod.spec.name},
                     {"node", pod.spec.node},
                     {"hostname", pod.spec.hostname},
                     {"fullName", pod.spec.full_name},
                     {"hostIP", pod.spec.host_ip},
                     {"hostNetwork", pod.spec.host_network},
                     {"checkpointKey", pod.spec.checkpoint_key},
                     {"jobUID", pod.spec.job_uid},
                     {"podIP", pod.info.ip},
                     {"slot", pod.slot},
                     {"hostPID", pod.spec.security.host_pid},
                     {"hostIPC", pod.spec.security.host_ipc},
                     {"sysctls", std::move(sysctls)},
                     {"ownUsers", pod.own_users},
                     {"stopped", pod.stopped},
                     {"volumes", std::move(volumes)}};
  if (pod.spec.fs_group) value["fsGroup"] = *pod.spec.fs_group;
  return ReplaceFile(pod.dir + "/pod.json", json::Print(json::Value(std::move(value))), 0600);
}

namespace {

// A container that fails again and again would fill the disk with what its starts left below `dir`:
// "START", "START.log", "START.log.1".
void DiscardOldStarts(const std::string& dir, int newest, const std::string& trash, Remover& by) {
  const auto names = ListDir(dir);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const auto start = ParseInt(std::string_view(name).substr(0, name.find('.')));
    if (!start || *start > newest - kStartsKept) continue;
    Status removed = by.Discard(StrCat(dir, "/", name), trash);
    (void)removed;
  }
}

}  // namespace

Status PodStore::CreateContainerDir(const ProcessPod& pod, const ContainerRef& ref) {
  SWELL_RETURN_IF_ERROR(MakeDirs(StrCat(pod.dir, "/containers/", ref.name)));
  SWELL_RETURN_IF_ERROR(container_dirs_.Take(pod.ContainerDir(ref)));
  SWELL_RETURN_IF_ERROR(MakeDirs(StrCat(pod.dir, "/logs/", ref.name)));
  if (ref.attempt > 0) {
    DiscardScratch(pod.ContainerDir({ref.pod_uid, ref.name, ref.attempt - 1}));  // its log stays
    for (const char* of : {"/containers/", "/logs/"}) {
      DiscardOldStarts(StrCat(pod.dir, of, ref.name), ref.attempt, TrashDir(), remover_);
    }
  }
  ::unlink((pod.dir + "/run/notice/notice.json").c_str());
  return Status::Ok();
}

Result<std::string> PodStore::MakeCheckpointDir(const ProcessPod& pod, bool other_user) const {
  std::string path = options_.data_dir + "/checkpoints";
  for (std::string_view step : Split(pod.spec.checkpoint_key, '/')) {
    if (!IsPlainName(step)) {
      return Status(Code::kInvalid,
                    StrCat("checkpoint key ", Quote(pod.spec.checkpoint_key), " is not usable"));
    }
    // Other users of the machine cannot list the jobs. The pods of a job decide who reads its
    // files.
    SWELL_RETURN_IF_ERROR(MakeDirs(path, 0711));
    path += StrCat("/", step);
  }
  SWELL_RETURN_IF_ERROR(MakeDirs(path));
  if (other_user) ::chmod(path.c_str(), 0777);
  return path;
}

// ---- the end ----

void PodStore::DiscardScratch(const std::string& container_dir) {
  for (const char* part : {"/upper", "/workdir", "/tmp", "/scratch"}) {
    Status removed = remover_.Discard(container_dir + part, TrashDir());
    (void)removed;
  }
}

void PodStore::DiscardScratch(const ProcessPod& pod) {
  for (const auto& [name, container] : pod.containers) DiscardScratch(container->dir);
  DiscardMemory(pod.spec.pod_uid);
}

void PodStore::DiscardMemory(const std::string& uid) {
  const std::string dir = MemoryDir(uid);
  if (auto names = ListDir(dir); names.ok()) {
    for (const std::string& name : *names) {
      ::umount2(StrCat(dir, "/", name).c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
    }
  }
  Status memory = remover_.Discard(dir, MemoryTrashDir());
  (void)memory;
}

Status PodStore::DiscardDir(const ProcessPod& pod) {
  if (options_.keep_logs && !pod.spec.job_uid.empty() && !pod.containers.empty()) {
    const Status kept = kept_logs_.Keep(
        {pod.spec.job_uid, pod.spec.pod_uid, StrCat(pod.spec.ns, "/", pod.spec.name)},
        pod.dir + "/logs");
    if (!kept.ok()) {
      SWELL_LOG_WARNING("process", "log not kept", {"pod", pod.spec.name},
                        {"error", kept.ToString()});
    }
  }
  return remover_.Discard(pod.dir, TrashDir());
}

void PodStore::Refill() {
  pod_dirs_.Refill();
  container_dirs_.Refill();
}

void PodStore::Finish() {
  pod_dirs_.Finish();
  container_dirs_.Finish();
  Status cleared = RemoveTree(ReadyDir());
  (void)cleared;
  remover_.Finish();
  ::rmdir(TrashDir().c_str());
  ::rmdir(MemoryTrashDir().c_str());
  ::rmdir(MemoryRoot().c_str());
}

}  // namespace swell::process
