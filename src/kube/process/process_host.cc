#include "kube/process/process_host.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/random.h"
#include "base/strings.h"
#include "kube/process/files/volumes.h"
#include "kube/process/shim/beneath.h"

namespace swell::edge {
namespace {

using node::ContainerRef;
using node::SandboxInfo;

constexpr size_t kReportBytesMax = 64 << 10;

// Written in place: containers have this very file mounted.
Status RewriteFile(const std::string& path, std::string_view bytes) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoStatus(errno, "open " + path);
  ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), 0);
  int error = n == static_cast<ssize_t>(bytes.size()) ? 0 : (n < 0 ? errno : ENOSPC);
  if (error == 0 && ::ftruncate(fd, n) != 0) error = errno;
  ::close(fd);
  return error == 0 ? Status::Ok() : ErrnoStatus(error, "write " + path);
}

// What every pod's directory has.
Status FurnishPodDir(const std::string& dir) {
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

// What every attempt's directory has.
Status FurnishContainerDir(const std::string& dir, Isolation isolation) {
  std::vector<std::string> parts{""};
  if (isolation != Isolation::kNone) parts.insert(parts.end(), {"/root", "/tmp"});
  if (isolation == Isolation::kFull) parts.insert(parts.end(), {"/upper", "/workdir"});
  for (const std::string& part : parts) SWELL_RETURN_IF_ERROR(MakeDirs(dir + part));
  for (const char* file : {"/spec.json", "/state.json", "/exit.json"}) {
    SWELL_RETURN_IF_ERROR(PrepareReplace(dir + file, 0600));
  }
  return ReplaceFile(dir + "/termination-log", "", 0666);
}

}  // namespace

ProcessHost::Container::~Container() {
  shim_watch.reset();
  if (shim_fd >= 0) ::close(shim_fd);
  if (init_fd >= 0) ::close(init_fd);
}

ProcessHost::ProcessHost(Executor& core,
                         net::Reactor& reactor,
                         ProcessOptions options,
                         HostSupport support,
                         ImageCatalogue catalogue,
                         std::string tag,
                         Events events)
    : reactor_(reactor),
      options_(std::move(options)),
      support_(std::move(support)),
      catalogue_(std::move(catalogue)),
      tag_(std::move(tag)),
      events_(std::move(events)),
      streams_(core, reactor) {}

ProcessHost::~ProcessHost() {
  scope_.Close();
  // Watches end before what they watch, and both before the reactor.
  probes_.clear();
  execs_.clear();
  dials_.clear();
  for (const auto& job : stdio_jobs_) HangUp(job);
  stdio_jobs_.clear();
  launches_.clear();
  EndReadyShims();
  pods_.clear();
  services_.reset();
  network_.reset();
  files_.reset();
}

std::string ProcessHost::PodDir(const std::string& uid) const {
  return StrCat(options_.data_dir, "/pods/", uid);
}

std::string ProcessHost::MemoryDir(const std::string& uid) const {
  return StrCat("/dev/shm/swell-", tag_, "/", uid);
}

std::string ProcessHost::GroupName(const ContainerRef& ref) {
  return StrCat(ref.pod_uid, ".", ref.name, ".", ref.attempt);
}

void ProcessHost::CleanCgroups() {
  edge::CleanCgroups(support_.cgroups,
                     [this](const std::string& pod_uid) { return pods_.contains(pod_uid); });
}

std::string ProcessHost::Attic() const { return options_.data_dir + "/removed"; }

std::string ProcessHost::ReadyDir() const { return options_.data_dir + "/ready"; }

std::string ProcessHost::MemoryAttic() const { return MemoryDir("removed"); }

// ---- what containers use ----

std::map<ContainerRef, node::ContainerUsage> ProcessHost::Measure() {
  const CgroupSupport& groups = support_.cgroups;
  std::vector<UsageMeter::Subject> subjects;
  for (const auto& [uid, pod] : pods_) {
    for (const auto& [name, container] : pod->containers) {
      if (!container->running) continue;
      subjects.push_back(
          {container->ref, container->state.init_pid,
           groups.version == 2 ? StrCat(groups.memory_dir, "/", GroupName(container->ref)) : "",
           container->started.started});
    }
  }
  std::map<ContainerRef, node::ContainerUsage> out;
  for (node::ContainerUsage& usage : meter_.Measure(subjects, clock_.Now(), clock_.Steady())) {
    out.emplace(usage.ref, usage);
  }
  return out;
}

// So that there is a moment to compare with whenever somebody asks.
void ProcessHost::MeasureLater() {
  reactor_.After(UsageMeter::kWindow, scope_.Wrap([this] {
    Measure();
    MeasureLater();
  }));
}

std::vector<node::ContainerUsage> ProcessHost::Usage(const std::string& node) {
  std::vector<node::ContainerUsage> out;
  for (const auto& [ref, usage] : Measure()) {
    const auto pod = pods_.find(ref.pod_uid);
    if (pod != pods_.end() && pod->second->spec.node == node) out.push_back(usage);
  }
  return out;
}

// ---- what earlier runs left ----

Status ProcessHost::Start() {
  for (const char* part : {"/pods", "/volumes"}) {
    SWELL_RETURN_IF_ERROR(MakeDirs(options_.data_dir + part, 0711));
  }
  remover_.Empty(Attic());
  remover_.Empty(MemoryAttic());
  MakeReadyDirs();
  SWELL_ASSIGN_OR_RETURN(files_, FileWatch::Create(reactor_));
  SWELL_ASSIGN_OR_RETURN(std::vector<std::string> uids, ListDir(options_.data_dir + "/pods"));
  for (const std::string& uid : uids) {
    Status loaded = LoadPod(uid);
    if (loaded.ok()) continue;
    SWELL_LOG_WARNING("process", "unreadable pod removed", {"uid", uid},
                      {"error", loaded.ToString()});
    Status removed = RemoveScratch(PodDir(uid));
    (void)removed;
  }
  if (support_.network) {
    std::set<int> slots;
    for (const auto& [uid, pod] : pods_) {
      if (pod->slot > 0) slots.insert(pod->slot);
    }
    network_ = std::make_unique<PodNetwork>(PodNetwork::Options{
        .dir = options_.data_dir + "/run/netns",
        .tag = tag_,
        .cidr = options_.cluster_cidr,
        .ready = options_.ready_networks,
        .post = [this](std::function<void()> fn) { reactor_.Post(std::move(fn)); }});
    Status started = network_->Start(slots);
    if (!started.ok()) {
      network_.reset();
      support_.network = false;
      support_.missing.push_back(
          StrCat("pods share the host's network, their ports must differ: ", started.message()));
    } else {
      services_ = std::make_unique<ServiceProxy>(reactor_, network_->bridge());
    }
  }
  CleanCgroups();
  // Not while the cluster itself starts.
  reactor_.After(std::chrono::seconds(1), scope_.Wrap([this] {
    ReadyShims();
    pod_dirs_->Refill();
    container_dirs_->Refill();
  }));
  MeasureLater();
  return Status::Ok();
}

void ProcessHost::MakeReadyDirs() {
  // An earlier run's: another version may have made them.
  Status cleared = remover_.Discard(ReadyDir(), Attic());
  (void)cleared;
  auto make = [this](const char* name, std::function<Status(const std::string&)> furnish) {
    return std::make_unique<ReadyDirs>(ReadyDirs::Options{
        .prefix = StrCat(ReadyDir(), "/", name),
        .ready = options_.ready_dirs,
        .make = std::move(furnish),
        .post = [this](std::function<void()> fn) { reactor_.Post(std::move(fn)); }});
  };
  pod_dirs_ = make("pod-", FurnishPodDir);
  container_dirs_ = make("container-", [isolation = support_.isolation](const std::string& dir) {
    return FurnishContainerDir(dir, isolation);
  });
}

Status ProcessHost::LoadPod(const std::string& uid) {
  SWELL_ASSIGN_OR_RETURN(std::string text, ReadFile(PodDir(uid) + "/pod.json", 4 << 20));
  SWELL_ASSIGN_OR_RETURN(json::Value value, json::Parse(text));
  auto pod = std::make_unique<Pod>();
  pod->dir = PodDir(uid);
  pod->spec.pod_uid = uid;
  auto read = [&value](std::string_view key) { return std::string(json::GetString(value, {key})); };
  pod->spec.ns = read("namespace");
  pod->spec.name = read("name");
  pod->spec.node = read("node");
  pod->spec.hostname = read("hostname");
  pod->spec.host_ip = read("hostIP");
  pod->spec.host_network = json::GetBool(value, {"hostNetwork"});
  pod->spec.checkpoint_key = read("checkpointKey");
  if (const json::Value* group = json::Find(value, {"fsGroup"}); group && group->is_int64()) {
    pod->spec.fs_group = group->get_int64();
  }
  pod->info.ip = read("podIP");
  pod->slot = static_cast<int>(json::GetInt(value, {"slot"}));
  pod->stopped = json::GetBool(value, {"stopped"});
  for (const auto& item : json::GetObject(value, {"volumes"})) {
    if (item.value().is_string()) {
      pod->volumes.emplace(item.key(), json::View(item.value().get_string()));
    }
  }
  auto names = ListDir(pod->dir + "/containers");
  if (names.ok()) {
    for (const std::string& name : *names) LoadContainer(*pod, name);
  }
  WatchReports(*pod);
  pods_.emplace(uid, std::move(pod));
  return Status::Ok();
}

// The newest attempt that was started.
void ProcessHost::LoadContainer(Pod& pod, const std::string& name) {
  std::string base = StrCat(pod.dir, "/containers/", name);
  auto attempts = ListDir(base);
  if (!attempts.ok()) return;
  int64_t newest = -1;
  for (const std::string& text : *attempts) newest = std::max(newest, ParseInt(text).value_or(-1));
  if (newest < 0) return;
  auto container = std::make_unique<Container>();
  container->ref = {pod.spec.pod_uid, name, static_cast<int>(newest)};
  container->dir = StrCat(base, "/", newest);
  container->log_path = StrCat(pod.dir, "/logs/", name, "/", newest, ".log");
  auto text = ReadFile(container->dir + "/state.json", 65536);
  if (!text.ok()) return;
  auto value = json::Parse(*text);
  if (!value.ok()) return;
  auto state = ShimState::FromJson(*value);
  if (!state.ok()) return;
  container->state = *state;
  container->started = {
      StrCat("process://", pod.spec.pod_uid, "-", name, "-", newest), "", {state->started_ns}};
  bool lives = state->shim_start != 0 && ProcessStartTime(state->shim_pid) == state->shim_start;
  if (lives && !FileExists(container->dir + "/exit.json") && WatchContainer(*container).ok()) {
    container->running = true;
  } else {
    container->exit = ReadExit(*container);
  }
  pod.containers.emplace(name, std::move(container));
}

Status ProcessHost::SavePod(const Pod& pod) const {
  json::Object volumes;
  for (const auto& [name, path] : pod.volumes) volumes[name] = path;
  json::Object value{{"namespace", pod.spec.ns},
                     {"name", pod.spec.name},
                     {"node", pod.spec.node},
                     {"hostname", pod.spec.hostname},
                     {"hostIP", pod.spec.host_ip},
                     {"hostNetwork", pod.spec.host_network},
                     {"checkpointKey", pod.spec.checkpoint_key},
                     {"podIP", pod.info.ip},
                     {"slot", pod.slot},
                     {"stopped", pod.stopped},
                     {"volumes", std::move(volumes)}};
  if (pod.spec.fs_group) value["fsGroup"] = *pod.spec.fs_group;
  return ReplaceFile(pod.dir + "/pod.json", json::Print(json::Value(std::move(value))), 0600);
}

ProcessHost::Pods ProcessHost::List(const std::string& node) const {
  Pods found;
  for (const auto& [uid, pod] : pods_) {
    if (pod->spec.node != node) continue;
    node::FoundPod out{uid, pod->spec.ns, pod->spec.name, pod->info, {}};
    for (const auto& [name, container] : pod->containers) {
      out.containers.push_back({name, container->ref.attempt, container->started, container->exit});
    }
    found.push_back(std::move(out));
  }
  return found;
}

void ProcessHost::Adopt(const node::FoundPod& found) {
  for (const node::FoundContainer& known : found.containers) {
    Container* container = Find({found.pod_uid, known.name, known.attempt});
    if (container == nullptr || !container->exit || known.exit) continue;
    events_.on_exit(container->ref, *container->exit);
  }
}

// ---- sandboxes ----

std::string ProcessHost::LoopbackAddress(const std::string& uid) const {
  // Distinct with the odds of 16 million; a clash is tried again with another hash.
  uint64_t hash = StableHash(uid, StableHash(tag_));
  for (int i = 0; i < 64; ++i) {
    std::string ip =
        StrCat("127.", 1 + hash % 250, ".", (hash >> 8) % 256, ".", 1 + (hash >> 16) % 254);
    bool taken = std::any_of(pods_.begin(), pods_.end(),
                             [&](const auto& entry) { return entry.second->info.ip == ip; });
    if (!taken) return ip;
    hash = StableHash(ip, hash);
  }
  return "127.0.0.1";
}

void ProcessHost::CreateSandbox(const node::SandboxSpec& spec,
                                std::function<void(Result<SandboxInfo>)> done) {
  for (const std::string* name : {&spec.pod_uid, &spec.ns, &spec.name}) {
    if (!IsPlainName(*name)) {
      return done(Status(Code::kInvalid, StrCat("pod: ", Quote(*name), " is not a usable name")));
    }
  }
  auto pod = std::make_unique<Pod>();
  pod->spec = spec;
  pod->dir = PodDir(spec.pod_uid);
  bool own_network = network_ != nullptr && !spec.host_network;
  if (spec.host_network) pod->info.ip = spec.host_ip;
  if (!own_network && !spec.host_network) pod->info.ip = LoopbackAddress(spec.pod_uid);
  Status made = MakePodFiles(*pod);
  if (!made.ok()) {
    Status removed = RemoveScratch(pod->dir);
    (void)removed;
    return done(made);
  }
  std::string uid = spec.pod_uid;
  pods_[uid] = std::move(pod);
  if (!own_network) return FinishSandbox(uid, done);
  network_->Acquire([this, uid, done = std::move(done)](Result<NetworkLease> lease) {
    auto it = pods_.find(uid);
    if (it == pods_.end()) {
      if (lease.ok()) network_->Release(lease->slot);
      return done(Status(Code::kInternal, "the pod was removed"));
    }
    if (!lease.ok()) return done(lease.status());
    it->second->slot = lease->slot;
    it->second->info.ip = lease->ip;
    FinishSandbox(uid, done);
  });
}

Status ProcessHost::MakePodFiles(Pod& pod) {
  SWELL_RETURN_IF_ERROR(pod_dirs_->Take(pod.dir));
  for (const node::VolumeSpec& volume : pod.spec.volumes) {
    SWELL_ASSIGN_OR_RETURN(std::string path,
                           MakeVolume(volume, pod.dir, options_.data_dir, pod.spec.fs_group));
    if (volume.kind == node::VolumeSpec::Kind::kMemory) {
      // Shared by the pod's containers, so it cannot be a mount of one of them.
      path = StrCat(MemoryDir(pod.spec.pod_uid), "/", volume.name);
      if (!MakeDirs(path).ok()) {
        path = StrCat(pod.dir, "/volumes/", volume.name);
        SWELL_RETURN_IF_ERROR(MakeDirs(path));
      }
      ::chmod(path.c_str(), 01777);
    }
    pod.volumes[volume.name] = path;
  }
  SWELL_RETURN_IF_ERROR(RewriteFile(pod.dir + "/etc/hostname", pod.spec.hostname + "\n"));
  auto resolv = ReadFile("/etc/resolv.conf", 65536);
  std::string text = resolv.ok() ? *resolv : "";
  if (network_ && !pod.spec.host_network) text = network_->ResolvConf(text);
  return RewriteFile(pod.dir + "/etc/resolv.conf", text);
}

void ProcessHost::FinishSandbox(const std::string& uid,
                                const std::function<void(Result<SandboxInfo>)>& done) {
  Pod& pod = *pods_.at(uid);
  Status status = WriteHosts(pod);
  if (status.ok()) status = SavePod(pod);
  if (!status.ok()) return done(status);
  WatchReports(pod);
  done(pod.info);
}

Status ProcessHost::WriteHosts(const Pod& pod) const {
  std::string text =
      "# Written by swell: names of the cluster's services, replaced when they change.\n"
      "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n";
  text += StrCat(pod.info.ip, "\t", pod.spec.hostname);
  if (pod.spec.name != pod.spec.hostname) text += StrCat(" ", pod.spec.name);
  text += '\n';
  for (const node::HostsEntry& entry : pod.spec.hosts) {
    if (entry.ip.empty() || entry.names.empty()) continue;
    text += StrCat(entry.ip, "\t", Join(entry.names, " "), "\n");
  }
  return RewriteFile(pod.dir + "/etc/hosts", text);
}

void ProcessHost::WatchReports(Pod& pod) {
  if (pod.stopped) return;
  std::string dir = pod.dir + "/run/report";
  auto watch = files_->Add(dir, [this, dir, uid = pod.spec.pod_uid](const std::string& file) {
    if (file != "report.json") return;
    auto text = ReadPlainFile(dir, file, kReportBytesMax);
    if (text.ok() && !text->empty()) events_.on_report(uid, *text);
  });
  if (watch.ok()) pod.report_watch = std::move(*watch);
}

void ProcessHost::UpdateHosts(const std::string& uid, const std::vector<node::HostsEntry>& hosts) {
  auto it = pods_.find(uid);
  if (it == pods_.end() || it->second->spec.hosts == hosts) return;
  it->second->spec.hosts = hosts;
  Status written = WriteHosts(*it->second);
  if (!written.ok()) {
    SWELL_LOG_WARNING("process", "hosts file not written", {"uid", uid},
                      {"error", written.ToString()});
  }
}

void ProcessHost::RouteServices(const std::vector<node::ServiceRoute>& routes) {
  if (services_) services_->Update(routes);
}

void ProcessHost::UpdateVolume(const std::string& uid, const node::VolumeSpec& volume) {
  auto it = pods_.find(uid);
  if (it == pods_.end()) return;
  Status written = UpdateFiles(volume, it->second->dir, it->second->spec.fs_group);
  if (!written.ok()) {
    SWELL_LOG_WARNING("process", "volume not updated", {"uid", uid}, {"volume", volume.name},
                      {"error", written.ToString()});
  }
}

void ProcessHost::WriteNotice(const std::string& uid, const std::string& json) {
  auto it = pods_.find(uid);
  if (it == pods_.end()) return;
  Status written = ReplaceFile(it->second->dir + "/run/notice/notice.json", json);
  if (!written.ok()) {
    SWELL_LOG_WARNING("process", "notice not written", {"uid", uid}, {"error", written.ToString()});
  }
}

// ---- the end ----

void ProcessHost::Stop(const std::string& uid) {
  auto it = pods_.find(uid);
  if (it == pods_.end() || it->second->stopped) return;
  Pod& pod = *it->second;
  bool running = std::any_of(pod.containers.begin(), pod.containers.end(),
                             [](const auto& entry) { return entry.second->running; });
  if (running) return;
  pod.stopped = true;
  pod.report_watch.reset();
  if (pod.slot > 0) network_->Release(std::exchange(pod.slot, 0));
  for (const auto& [name, container] : pod.containers) DiscardScratch(container->dir);
  Status memory = remover_.Discard(MemoryDir(uid), MemoryAttic());
  Status saved = SavePod(pod);
  (void)memory;
  if (!saved.ok()) SWELL_LOG_WARNING("process", "pod not saved", {"error", saved.ToString()});
}

void ProcessHost::DiscardScratch(const std::string& container_dir) {
  for (const char* part : {"/upper", "/workdir", "/tmp", "/scratch"}) {
    Status removed = remover_.Discard(container_dir + part, Attic());
    (void)removed;
  }
}

void ProcessHost::Remove(const std::string& uid, std::function<void(const Status&)> done) {
  auto it = pods_.find(uid);
  if (it == pods_.end()) return done(Status::Ok());
  Pod& pod = *it->second;
  auto earlier = std::move(pod.removing);
  pod.removing = [earlier = std::move(earlier), done = std::move(done)](const Status& status) {
    if (earlier) earlier(status);
    done(status);
  };
  bool running = false;
  for (const auto& [name, container] : pod.containers) {
    if (!container->running) continue;
    running = true;
    Signal(container->ref, SIGKILL);
  }
  bool launching = std::any_of(launches_.begin(), launches_.end(),
                               [&](const auto& launch) { return launch->ref.pod_uid == uid; });
  if (!running && !launching) RemoveNow(uid);
}

void ProcessHost::RemoveNow(const std::string& uid) {
  Stop(uid);
  auto node = pods_.extract(uid);
  if (node.empty()) return;
  auto pod = std::move(node.mapped());
  if (pod->slot > 0) network_->Release(pod->slot);
  Status removed = remover_.Discard(pod->dir, Attic());
  CleanCgroups();
  if (pod->removing) pod->removing(removed);
}

void ProcessHost::Shutdown(std::function<void()> done) {
  std::vector<std::string> uids;
  for (const auto& [uid, pod] : pods_) uids.push_back(uid);
  auto left = std::make_shared<size_t>(uids.size() + 1);
  auto step = [this, left, done = std::move(done)](const Status&) {
    if (--*left > 0) return;
    services_.reset();
    if (network_) network_->Shutdown();
    network_.reset();
    CleanCgroups();
    RemoveCgroups(support_.cgroups);
    pod_dirs_->Finish();
    container_dirs_->Finish();
    Status cleared = RemoveTree(ReadyDir());
    (void)cleared;
    remover_.Finish();
    ::rmdir(Attic().c_str());
    ::rmdir(MemoryAttic().c_str());
    ::rmdir(StrCat("/dev/shm/swell-", tag_).c_str());
    done();
  };
  for (const std::string& uid : uids) Remove(uid, step);
  step(Status::Ok());
}

Result<std::string> ProcessHost::LogPath(const ContainerRef& ref) const {
  if (!IsPlainName(ref.pod_uid) || !IsPlainName(ref.name)) {
    return Status(Code::kInvalid, "container: not a usable name");
  }
  return StrCat(PodDir(ref.pod_uid), "/logs/", ref.name, "/", ref.attempt, ".log");
}

bool ProcessHost::IsRunning(const ContainerRef& ref) const {
  Container* container = Find(ref);
  return container != nullptr && container->running;
}

void ProcessHost::WhenEnded(const ContainerRef& ref, std::function<void()> fn) {
  Container* container = Find(ref);
  if (container == nullptr || !container->running) {
    reactor_.Post(std::move(fn));
    return;
  }
  container->when_ended.push_back(std::move(fn));
}

ProcessHost::Container* ProcessHost::Find(const ContainerRef& ref) const {
  auto pod = pods_.find(ref.pod_uid);
  if (pod == pods_.end()) return nullptr;
  auto it = pod->second->containers.find(ref.name);
  if (it == pod->second->containers.end() || it->second->ref.attempt != ref.attempt) return nullptr;
  return it->second.get();
}

}  // namespace swell::edge
