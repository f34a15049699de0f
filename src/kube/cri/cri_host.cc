#include "kube/cri/cri_host.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/cri/pods_device.h"
#include "kube/images/manifest.h"
#include "kube/process/files/volumes.h"
#include "kube/process/network/resolv_conf.h"
#include "kube/process/shim_launcher.h"

namespace swell::cri {
namespace {

using node::ContainerRef;
using node::ContainerStarted;
using node::SandboxInfo;
using process::ProcessContainer;
using process::ProcessPod;

// An engine on a busy machine takes its time, and a name whose creation is given up stays reserved.
constexpr Duration kCreateLimit = std::chrono::minutes(4);
constexpr Duration kCallLimit = std::chrono::minutes(2);
constexpr Duration kStartLimit = std::chrono::seconds(15);
constexpr Duration kExecSlack = std::chrono::seconds(10);
// The agent decides when a grace period is over. The engine must not kill before that.
constexpr int64_t kStopSeconds = 86'400;
constexpr Duration kPollInterval = std::chrono::seconds(1);
constexpr Duration kSweepInterval = std::chrono::seconds(30);
constexpr Duration kEndInterval = std::chrono::milliseconds(20);
constexpr int kEndTries = 100;
constexpr int kExitUnknown = 137;
constexpr int kSignalBase = 128;
constexpr size_t kRoutesBytesMax = 16 << 20;
// The bridge's network has no pods: it is as small as can be, since plug-ins may choose the same.
constexpr int kNetworkBits = 28;

}  // namespace

// A container that is being started.
struct CriHost::Launch {
  node::ContainerSpec spec;
  std::string id;
  std::function<void(Result<ContainerStarted>)> done;
};

CriHost::CriHost(Executor& core,
                 net::Reactor& reactor,
                 CriOptions options,
                 GrpcClient& client,
                 Engine engine,
                 Events events)
    : ContainerHost(core,
                    reactor,
                    {.data_dir = options.data_dir,
                     .tag = options.instance,
                     .isolation = process::Isolation::kFull,
                     .ready_dirs = 0,
                     .keep_logs = options.keep_logs,
                     .post = [&reactor](std::function<void()> fn) { reactor.Post(std::move(fn)); }},
                    std::move(events)),
      options_(std::move(options)),
      client_(client),
      engine_(std::move(engine)) {}

CriHost::~CriHost() { scope_.Close(); }

void CriHost::Call(std::string_view method,
                   const Message& message,
                   Duration deadline,
                   Answer done) {
  client_.CallOn(reactor_,
                 {.method = StrCat("runtime.v1.RuntimeService/", method),
                  .message = message.bytes(),
                  .deadline = deadline},
                 scope_.Wrap(std::move(done)));
}

// ---- what earlier runs left ----

Status CriHost::Start() {
  SWELL_RETURN_IF_ERROR(StartFiles());
  SWELL_RETURN_IF_ERROR(Restore());
  for (const auto& [uid, pod] : store_.pods()) WatchReports(*pod);
  const Status network = StartNetwork();
  if (!network.ok()) {
    network_.reset();
    missing_.push_back(StrCat("pods reach neither the API server nor services of this machine: ",
                              network.message()));
  }
  missing_.push_back(
      "NetworkPolicies and isolated projects have no effect: the pods' networks are the engine's");
  missing_.push_back(
      "root in a container is root of the machine: pods have no user ids of their own");
  StartWatching();
  PollLater();
  SweepLater();
  return Status::Ok();
}

// Pods are in networks that the engine made. They reach this machine, by its routes, at the address
// of a bridge that has no ports.
Status CriHost::StartNetwork() {
  network_ = std::make_unique<process::PodNetwork>(process::PodNetwork::Options{
      .dir = options_.data_dir + "/run/netns",
      .tag = options_.instance,
      .cidr = options_.cluster_cidr,
      .bits = kNetworkBits,
      .ready = 0,
      .post = [this](std::function<void()> fn) { reactor_.Post(std::move(fn)); }});
  SWELL_RETURN_IF_ERROR(network_->Start({}));
  services_ = std::make_unique<process::ServiceProxy>(reactor_, network_->bridge());
  for (const auto& [uid, pod] : store_.pods()) {
    if (!pod->spec.host_network) FindPodsDevice(pod->info.ip);
  }
  return Status::Ok();
}

Status CriHost::Restore() {
  auto ask = [this](std::string_view method, uint32_t labels) {
    return client_.CallAndWait({.method = StrCat("runtime.v1.RuntimeService/", method),
                                .message = FilterByInstance(labels, options_.instance).bytes(),
                                .deadline = kStartLimit});
  };
  SWELL_ASSIGN_OR_RETURN(const std::string sandboxes, ask("ListPodSandbox", 3));
  SWELL_ASSIGN_OR_RETURN(const std::string containers, ask("ListContainers", 4));
  for (const ListedSandbox& listed : ReadSandboxes(sandboxes)) {
    const auto uid = listed.labels.find(kUidLabel);
    if (uid == listed.labels.end()) continue;
    // The engine refuses an attempt whose sandbox it still has.
    int& attempts = attempts_[uid->second];
    attempts = std::max(attempts, static_cast<int>(listed.attempt) + 1);
    const ProcessPod* pod = store_.Find(uid->second);
    if (pod == nullptr) continue;  // a sweep removes it
    Sandbox& sandbox = sandboxes_[uid->second];
    if (!sandbox.id.empty() && !listed.ready) continue;
    sandbox.id = listed.id;
    auto config = ReadFile(ConfigFile(*pod), 1 << 20);
    if (config.ok()) sandbox.config = std::move(*config);
    const auto state =
        client_.CallAndWait({.method = "runtime.v1.RuntimeService/PodSandboxStatus",
                             .message = Message().Text(1, listed.id).Bool(2, true).bytes(),
                             .deadline = kStartLimit});
    if (state.ok()) sandbox.netns = ReadSandbox(*state).netns;
  }
  for (const ListedContainer& listed : ReadContainers(containers)) {
    SWELL_RETURN_IF_ERROR(RestoreContainer(listed));
  }
  // Pods that the engine does not know have ended unseen. The agent reports those that List leaves
  // out.
  std::vector<std::string> lost;
  for (const auto& [uid, pod] : store_.pods()) {
    if (!sandboxes_.contains(uid)) lost.push_back(uid);
  }
  for (const std::string& uid : lost) {
    ReleaseSubPaths(options_.data_dir, uid);
    const Status removed = DiscardPod(uid);
    SWELL_LOG_WARNING("cri", "pod that the engine does not know removed", {"uid", uid},
                      {"status", removed.ToString()});
  }
  return Status::Ok();
}

Status CriHost::RestoreContainer(const ListedContainer& listed) {
  const auto uid = listed.labels.find(kUidLabel);
  const auto name = listed.labels.find(kContainerLabel);
  if (uid == listed.labels.end() || name == listed.labels.end()) return Status::Ok();
  ProcessPod* pod = store_.Find(uid->second);
  if (pod == nullptr || listed.phase == Phase::kCreated) return Status::Ok();
  const ContainerRef ref{uid->second, name->second, static_cast<int>(listed.attempt)};
  auto& known = pod->containers[ref.name];
  if (known && known->ref.attempt > ref.attempt) return Status::Ok();
  SWELL_ASSIGN_OR_RETURN(
      const std::string bytes,
      client_.CallAndWait({.method = "runtime.v1.RuntimeService/ContainerStatus",
                           .message = Message().Text(1, listed.id).Bool(2, true).bytes(),
                           .deadline = kStartLimit}));
  const ContainerState state = ReadContainer(bytes);
  known = Track(*pod, ref, listed.id, state);
  ids_.erase({ref.pod_uid, ref.name, ref.attempt - 1});
  ids_[ref] = listed.id;
  if (const auto signal = listed.annotations.find(kSignalAnnotation);
      signal != listed.annotations.end()) {
    known->stop_signal = images::SignalNumber(signal->second);
  }
  return Status::Ok();
}

// ---- sandboxes ----

void CriHost::CreateSandbox(const node::SandboxSpec& spec,
                            std::function<void(Result<SandboxInfo>)> done) {
  if (const Status possible = CheckSandbox(spec); !possible.ok()) return done(possible);
  std::string resolv_conf;
  if (!spec.dns.alone) {
    auto read = ReadFile("/etc/resolv.conf", 65536);
    if (read.ok()) resolv_conf = std::move(*read);
  }
  auto created = store_.Create(spec, process::WithPodsDns(resolv_conf, spec.dns));
  if (!created.ok()) return done(created.status());
  ProcessPod& pod = **created;
  const std::string uid = spec.pod_uid;
  const Message config = SandboxConfig(pod, options_.instance, attempts_[uid]++);
  Status ready = CheckHostPaths(pod, options_.data_dir);
  if (ready.ok()) ready = process::ReplaceFile(ConfigFile(pod), config.bytes(), 0600);
  if (!ready.ok()) {
    const Status removed = DiscardPod(uid);
    return done(removed.ok() ? ready : removed);
  }
  sandboxes_[uid] = {"", config.bytes(), ""};
  Call("RunPodSandbox", Message().Add(1, config).Text(2, spec.runtime_handler), kCreateLimit,
       [this, uid, done = std::move(done)](const Result<std::string>& answer) {
         OnSandbox(uid, done, answer);
       });
}

void CriHost::OnSandbox(const std::string& uid,
                        const std::function<void(Result<SandboxInfo>)>& done,
                        const Result<std::string>& answer) {
  ProcessPod* pod = store_.Find(uid);
  if (!answer.ok()) {
    sandboxes_.erase(uid);
    if (pod != nullptr) {
      const Status removed = DiscardPod(uid);
      if (!removed.ok()) SWELL_LOG_WARNING("cri", "pod's directory not removed", {"uid", uid});
    }
    return done(answer.status());
  }
  const std::string id = ReadFirstText(*answer);
  if (pod == nullptr) {
    RemoveSandbox(id, [](const Status&) {});
    return done(Status(Code::kInternal, "the pod was removed"));
  }
  sandboxes_[uid].id = id;
  Call("PodSandboxStatus", Message().Text(1, id).Bool(2, true), kCallLimit,
       [this, uid, done](const Result<std::string>& status) { FinishSandbox(uid, done, status); });
}

Status CriHost::DiscardPod(const std::string& uid) {
  const auto node = store_.pods().extract(uid);
  const ProcessPod& pod = *node.mapped();
  store_.DiscardScratch(pod);
  const Status removed = store_.DiscardDir(pod);
  if (pod.on_removed) pod.on_removed(removed);
  return removed;
}

void CriHost::FinishSandbox(const std::string& uid,
                            const std::function<void(Result<SandboxInfo>)>& done,
                            const Result<std::string>& status) {
  ProcessPod* pod = store_.Find(uid);
  if (pod == nullptr) return done(Status(Code::kInternal, "the pod was removed"));
  if (!status.ok()) {
    // The agent tries again, with a new sandbox.
    RemoveNow(uid);
    return done(status.status());
  }
  const SandboxState state = ReadSandbox(*status);
  sandboxes_[uid].netns = state.netns;
  pod->info.ip = pod->spec.host_network ? pod->spec.host_ip : state.ip;
  if (!pod->spec.host_network) FindPodsDevice(state.ip);
  Status written = store_.WriteHosts(*pod);
  if (written.ok()) written = store_.Save(*pod);
  if (!written.ok()) return done(written);
  WatchReports(*pod);
  done(pod->info);
}

std::string CriHost::NetworkOf(const ProcessPod& pod) const {
  const auto sandbox = sandboxes_.find(pod.spec.pod_uid);
  return sandbox == sandboxes_.end() || pod.spec.host_network ? "" : sandbox->second.netns;
}

std::vector<node::RouteFault> CriHost::RouteServices(
    const std::vector<node::ServiceRoute>& routes) {
  routes_ = routes;
  return services_ ? services_->Update(routes) : std::vector<node::RouteFault>();
}

void CriHost::FindPodsDevice(const std::string& pod_ip) {
  if (pods_device_known_ || !services_ || pod_ip.empty()) return;
  pods_device_known_ = true;
  const auto routes = ReadFile("/proc/net/route", kRoutesBytesMax);
  services_.reset();
  services_ = std::make_unique<process::ServiceProxy>(
      reactor_, network_->bridge(), process::ServiceProxy::Judge(),
      PodsDevice(routes.ok() ? *routes : "", pod_ip));
  for (const node::RouteFault& fault : services_->Update(routes_)) {
    SWELL_LOG_WARNING("cri", "service not served", {"error", fault.message});
  }
}

// ---- containers ----

std::string CriHost::IdOf(const ContainerRef& ref) const {
  const auto id = ids_.find(ref);
  return id == ids_.end() ? "" : id->second;
}

void CriHost::StartContainer(const node::ContainerSpec& spec,
                             std::function<void(Result<ContainerStarted>)> done) {
  const ContainerRef& ref = spec.ref;
  const ProcessPod* pod = store_.Find(ref.pod_uid);
  const auto sandbox = sandboxes_.find(ref.pod_uid);
  if (pod == nullptr || sandbox == sandboxes_.end() || sandbox->second.id.empty()) {
    return done(Status(Code::kInternal, "the pod has no sandbox"));
  }
  if (!process::IsPlainName(ref.name)) {
    return done(Status(Code::kInvalid, StrCat("container ", Quote(ref.name), ": bad name")));
  }
  Status prepared = store_.CreateContainerDir(*pod, ref);
  if (prepared.ok()) prepared = PrepareVirtualGpus(*pod, spec);
  if (!prepared.ok()) return done(prepared);
  auto launch = std::make_shared<Launch>(Launch{spec, "", std::move(done)});
  client_.CallOn(reactor_,
                 {.method = "runtime.v1.ImageService/ImageStatus",
                  .message = Message().Add(1, Message().Text(1, spec.image_handle)).bytes(),
                  .deadline = kCallLimit},
                 scope_.Wrap([this, launch](const Result<std::string>& answer) {
                   if (!answer.ok()) return launch->done(answer.status());
                   const auto image = ReadImage(*answer);
                   if (image) return Create(launch, *image);
                   launch->done(Status(Code::kNotFound, StrCat("image ", Quote(launch->spec.image),
                                                               " is not there any more")));
                 }));
}

void CriHost::Create(const std::shared_ptr<Launch>& launch, const ImageInfo& image) {
  node::ContainerSpec& spec = launch->spec;
  const ProcessPod* pod = store_.Find(spec.ref.pod_uid);
  if (pod == nullptr) return launch->done(Status(Code::kInternal, "the pod was removed"));
  if (const Status may = CheckNonRoot(*pod, spec, image); !may.ok()) return launch->done(may);
  // The interface accepts a group only together with a user.
  if (spec.run_as_group && !spec.run_as_user && image.user.empty()) {
    spec.run_as_user = image.uid.value_or(0);
  }
  std::string target;
  if (!spec.target.empty()) {
    const auto found = pod->containers.find(spec.target);
    if (found != pod->containers.end() && found->second->running) target = IdOf(found->second->ref);
    if (target.empty()) {
      return launch->done(Status(
          Code::kInvalid, StrCat("the target container ", Quote(spec.target), " does not run")));
    }
  }
  const auto config =
      ContainerConfig({engine_, store_, *pod, spec, options_.instance, std::move(target)});
  if (!config.ok()) return launch->done(config.status());
  const Sandbox& sandbox = sandboxes_[spec.ref.pod_uid];
  const Message request = Message().Text(1, sandbox.id).Add(2, *config).Item(3, sandbox.config);
  Call("CreateContainer", request, kCreateLimit, [this, launch](const Result<std::string>& answer) {
    if (!answer.ok()) return launch->done(answer.status());
    launch->id = ReadFirstText(*answer);
    Begin(launch);
  });
}

void CriHost::Begin(const std::shared_ptr<Launch>& launch) {
  Call("StartContainer", Message().Text(1, launch->id), kCreateLimit,
       [this, launch](const Result<std::string>& started) {
         if (!started.ok()) return GiveUp(launch, started.status());
         Call("ContainerStatus", Message().Text(1, launch->id).Bool(2, true), kCallLimit,
              [this, launch](const Result<std::string>& status) { OnBegun(launch, status); });
       });
}

void CriHost::GiveUp(const std::shared_ptr<Launch>& launch, const Status& why) {
  Call("RemoveContainer", Message().Text(1, launch->id), kCallLimit,
       [](const Result<std::string>&) {});
  launch->done(why);
}

void CriHost::OnBegun(const std::shared_ptr<Launch>& launch, const Result<std::string>& status) {
  if (!status.ok()) return GiveUp(launch, status.status());
  const ContainerRef& ref = launch->spec.ref;
  ProcessPod* pod = store_.Find(ref.pod_uid);
  if (pod == nullptr) return GiveUp(launch, Status(Code::kInternal, "the pod was removed"));
  const ContainerState state = ReadContainer(*status);
  auto container = Track(*pod, ref, launch->id, state);
  if (!launch->spec.stop_signal.empty()) {
    container->stop_signal = images::SignalNumber(launch->spec.stop_signal);
  }
  // A container that has ended already: its end is reported after its start.
  const bool ended = container->exit.has_value();
  container->exit.reset();
  container->running = true;
  const ContainerRef before{ref.pod_uid, ref.name, ref.attempt - 1};
  if (const std::string old = IdOf(before); !old.empty()) {
    ids_.erase(before);
    Call("RemoveContainer", Message().Text(1, old), kCallLimit, [](const Result<std::string>&) {});
  }
  ids_[ref] = launch->id;
  const ContainerStarted started = container->started;
  pod->containers[ref.name] = std::move(container);
  launch->done(started);
  if (ended) OnEnd(ref, state);
  if (pod->on_removed) Signal(ref, SIGKILL);
}

std::unique_ptr<ProcessContainer> CriHost::Track(const ProcessPod& pod,
                                                 const ContainerRef& ref,
                                                 const std::string& id,
                                                 const ContainerState& state) {
  auto container = std::make_unique<ProcessContainer>();
  container->ref = ref;
  container->dir = pod.ContainerDir(ref);
  container->log_path = pod.LogPath(ref);
  container->started = {StrCat(engine_.version.name, "://", id), "", {state.started_ns}};
  container->running = state.phase == Phase::kRunning;
  if (container->running) {
    WatchProcess(*container, state.pid);
  } else {
    container->exit = ExitOf(*container, state);
  }
  return container;
}

// Reports an end at once instead of at the next poll. Containers that are virtual machines have no
// process here; for those the poll has to do.
void CriHost::WatchProcess(ProcessContainer& container, pid_t pid) {
  if (pid <= 0) return;
  container.state.init_pid = pid;
  container.state.init_start = process::ProcessStartTime(pid);
  container.init_fd = process::OpenPidFd(pid);
  // It has ended already.
  if (!container.init_fd.valid()) {
    reactor_.After(kEndInterval,
                   scope_.Wrap([this, ref = container.ref] { AskForEnd(ref, kEndTries); }));
    return;
  }
  auto watch = reactor_.WatchFd(container.init_fd.get(), [this, ref = container.ref]() mutable {
    const ContainerRef of = std::move(ref);  // the watch takes this closure along
    if (ProcessContainer* tracked = store_.Find(of)) tracked->shim_watch.reset();
    AskForEnd(of, kEndTries);
  });
  if (watch.ok()) container.shim_watch = std::move(*watch);
}

void CriHost::AskForEnd(const ContainerRef& ref, int tries) {
  const std::string id = IdOf(ref);
  if (id.empty() || tries <= 0 || !IsRunning(ref)) return;
  Call("ContainerStatus", Message().Text(1, id), kCallLimit,
       [this, ref, tries](const Result<std::string>& status) {
         if (!IsRunning(ref)) return;
         if (status.ok()) {
           const ContainerState state = ReadContainer(*status);
           if (state.phase != Phase::kRunning) return OnEnd(ref, state);
         } else if (status.status().code() == Code::kNotFound) {
           return OnEnd(ref, {});
         }
         reactor_.After(kEndInterval,
                        scope_.Wrap([this, ref, tries] { AskForEnd(ref, tries - 1); }));
       });
}

node::ContainerExit CriHost::ExitOf(const ProcessContainer& container,
                                    const ContainerState& state) const {
  node::ContainerExit exit;
  exit.started = container.started.started;
  exit.container_id = container.started.container_id;
  if (state.phase == Phase::kExited) {
    exit.code = state.exit_code;
    exit.signal = state.exit_code > kSignalBase ? state.exit_code - kSignalBase : 0;
    exit.oom_killed = state.reason == "OOMKilled";
    exit.finished = {state.finished_ns};
  } else {
    exit.code = kExitUnknown;
    exit.signal = SIGKILL;
    exit.reason = node::kStatusUnknown;
    exit.finished = clock_.Now();
  }
  process::ReadLastWords(container, exit);
  return exit;
}

void CriHost::OnEnd(const ContainerRef& ref, const ContainerState& state) {
  ProcessContainer* container = store_.Find(ref);
  if (container == nullptr || !container->running) return;
  container->running = false;
  container->exit = ExitOf(*container, state);
  ReportExit(*container);
  const ProcessPod* pod = store_.Find(ref.pod_uid);
  if (pod == nullptr || !pod->on_removed || pod->running()) return;
  reactor_.Post(scope_.Wrap([this, uid = ref.pod_uid] { FinishRemoval(uid); }));
}

void CriHost::Resize(const ContainerRef& ref,
                     const node::CpuAndMemory& amounts,
                     std::function<void(const Status&)> done) {
  // The engine gives containers no group of their pod's.
  if (ref.name.empty()) return done(Status::Ok());
  const Status running = FindRunning(ref).status();
  if (!running.ok()) return done(running);
  Call("UpdateContainerResources", Message().Text(1, IdOf(ref)).Add(2, ResourcesOf(amounts)),
       kCallLimit,
       [done = std::move(done)](const Result<std::string>& changed) { done(changed.status()); });
}

void CriHost::Signal(const ContainerRef& ref, int signal) {
  const ProcessContainer* container = store_.Find(ref);
  if (container == nullptr || !container->running) return;
  // The interface carries a pod's own stop signal only from version 1.33 on.
  if (signal != SIGKILL && container->stop_signal != 0 && container->init_fd.valid()) {
    ::syscall(SYS_pidfd_send_signal, container->init_fd.get(), container->stop_signal, nullptr, 0);
    return;
  }
  const int64_t seconds = signal == SIGKILL ? 0 : kStopSeconds;
  Call("StopContainer", Message().Text(1, IdOf(ref)).Number(2, seconds),
       std::chrono::seconds(seconds) + kCallLimit, [this, ref](const Result<std::string>& stopped) {
         if (!stopped.ok() && IsRunning(ref)) {
           SWELL_LOG_WARNING("cri", "container not stopped", {"uid", ref.pod_uid},
                             {"container", ref.name}, {"error", stopped.status().ToString()});
         }
         AskForEnd(ref, kEndTries);
       });
}

// ---- at intervals ----

void CriHost::PollLater() {
  reactor_.After(kPollInterval, scope_.Wrap([this] {
    const bool any = std::any_of(store_.pods().begin(), store_.pods().end(),
                                 [](const auto& entry) { return entry.second->running(); });
    if (!any) return PollLater();
    RotateLogs();
    Call("ListContainers", FilterByInstance(4, options_.instance), kCallLimit,
         [this](const Result<std::string>& answer) {
           OnList(answer);
           PollLater();
         });
  }));
}

void CriHost::OnList(const Result<std::string>& answer) {
  const std::string problem = answer.ok() ? "" : answer.status().message();
  if (problem != last_problem_ && !problem.empty()) {
    SWELL_LOG_WARNING("cri", "the engine does not answer", {"error", problem});
  }
  last_problem_ = problem;
  if (!answer.ok()) return;
  std::set<std::string> running;
  for (const ListedContainer& listed : ReadContainers(*answer)) {
    if (listed.phase == Phase::kRunning) running.insert(listed.id);
  }
  for (const auto& [ref, id] : ids_) {
    if (!running.contains(id) && IsRunning(ref)) AskForEnd(ref, 1);
  }
}

void CriHost::RotateLogs() {
  for (const auto& [uid, pod] : store_.pods()) {
    for (const auto& [name, container] : pod->containers) {
      struct stat info;
      const std::string& path = container->log_path;
      if (!container->running || ::stat(path.c_str(), &info) != 0) continue;
      if (info.st_size <= options_.log_bytes_max) continue;
      for (int i = options_.log_files_max - 2; i >= 0; --i) {
        const std::string from = i == 0 ? path : StrCat(path, ".", i);
        ::rename(from.c_str(), StrCat(path, ".", i + 1).c_str());
      }
      Call("ReopenContainerLog", Message().Text(1, IdOf(container->ref)), kCallLimit,
           [uid = uid](const Result<std::string>& reopened) {
             if (reopened.ok()) return;
             SWELL_LOG_WARNING("cri", "log not rotated", {"uid", uid},
                               {"error", reopened.status().ToString()});
           });
    }
  }
}

// Removes sandboxes of pods that are gone: their removal failed, or an earlier run ended before it.
void CriHost::SweepLater() {
  reactor_.After(kSweepInterval, scope_.Wrap([this] {
    Call("ListPodSandbox", FilterByInstance(3, options_.instance), kCallLimit,
         [this](const Result<std::string>& answer) {
           Sweep(answer);
           SweepLater();
         });
  }));
}

void CriHost::Sweep(const Result<std::string>& answer) {
  if (!answer.ok()) return;
  for (const ListedSandbox& listed : ReadSandboxes(*answer)) {
    const auto uid = listed.labels.find(kUidLabel);
    const auto known = sandboxes_.find(uid == listed.labels.end() ? "" : uid->second);
    // A sandbox without an id is being made.
    if (known != sandboxes_.end() && (known->second.id.empty() || known->second.id == listed.id)) {
      continue;
    }
    RemoveSandbox(listed.id, [](const Status&) {});
  }
}

// Each answer that is still to come holds it. With the last one it ends, and the files are
// measured.
struct CriHost::DiskSum {
  std::map<std::string, int64_t> roots;  // by container
  std::function<void()> next;
  ~DiskSum() { next(); }
};

void CriHost::MeasureDisk(const std::string& uid, std::function<void(node::DiskUse)> done) {
  const ProcessPod* pod = store_.Find(uid);
  if (pod == nullptr) return done({});
  auto sum = std::make_shared<DiskSum>();
  sum->next = scope_.Wrap([this, uid, sum = sum.get(), done = std::move(done)] {
    ContainerHost::MeasureDisk(uid, [done, roots = sum->roots](node::DiskUse use) {
      for (const auto& [name, bytes] : roots) use.containers[name] += bytes;
      done(std::move(use));
    });
  });
  for (const auto& [name, container] : pod->containers) {
    Call("ContainerStats", Message().Text(1, IdOf(container->ref)), kCallLimit,
         [sum, name = name](const Result<std::string>& answer) {
           if (answer.ok()) sum->roots[name] = ReadWritableBytes(*answer);
         });
  }
}

// ---- commands ----

void CriHost::Exec(const ContainerRef& ref,
                   const node::ExecSpec& spec,
                   std::function<void(Result<node::ExecResult>)> done) {
  if (auto container = FindRunning(ref); !container.ok()) return done(container.status());
  if (spec.argv.empty()) return done(Status(Code::kInvalid, "command: must not be empty"));
  constexpr Duration kSecond = std::chrono::seconds(1);
  Message request;
  request.Text(1, IdOf(ref));
  for (const std::string& word : spec.argv) request.Item(2, word);
  request.Number(3, std::max<int64_t>(1, (spec.timeout + kSecond - Duration(1)) / kSecond));
  Call("ExecSync", request, spec.timeout + kExecSlack,
       [done = std::move(done), limit = spec.output_bytes_max](const Result<std::string>& answer) {
         node::ExecResult result;
         if (!answer.ok()) {
           if (answer.status().code() != Code::kTimeout) return done(answer.status());
           result.timed_out = true;
           return done(std::move(result));
         }
         const CommandOutput output = ReadOutput(*answer);
         result.code = output.code;
         result.output = (output.out + output.error).substr(0, limit);
         done(std::move(result));
       });
}

void CriHost::OpenStream(const ContainerRef& ref,
                         const node::StdioSpec& spec,
                         std::function<void(Result<std::string>)> done) {
  if (auto container = FindRunning(ref); !container.ok()) return done(container.status());
  Message request;
  request.Text(1, IdOf(ref));
  const bool attach = spec.argv.empty();
  if (attach) {
    request.Bool(2, spec.input).Bool(3, spec.tty).Bool(4, spec.output).Bool(5, spec.error);
  } else {
    for (const std::string& word : spec.argv) request.Item(2, word);
    request.Bool(3, spec.tty).Bool(4, spec.input).Bool(5, spec.output).Bool(6, spec.error);
  }
  Call(attach ? "Attach" : "Exec", request, kCallLimit,
       [done = std::move(done)](const Result<std::string>& answer) {
         if (!answer.ok()) return done(answer.status());
         done(ReadFirstText(*answer));
       });
}

// ---- the end ----

void CriHost::Stop(const std::string& uid) {
  ProcessPod* pod = store_.Find(uid);
  if (pod == nullptr || pod->stopped || pod->running()) return;
  pod->stopped = true;
  pod->report_watch.reset();
  const auto sandbox = sandboxes_.find(uid);
  if (sandbox != sandboxes_.end() && !sandbox->second.id.empty()) {
    Call("StopPodSandbox", Message().Text(1, sandbox->second.id), kCallLimit,
         [this, uid](const Result<std::string>&) {
           // What the engine still had mounted is released now.
           if (const ProcessPod* ended = store_.Find(uid)) store_.DiscardScratch(*ended);
         });
  }
  ReleaseSubPaths(options_.data_dir, uid);
  Status saved = store_.Save(*pod);
  if (!saved.ok()) SWELL_LOG_WARNING("cri", "pod not saved", {"error", saved.ToString()});
}

void CriHost::Remove(const std::string& uid, std::function<void(const Status&)> done) {
  attempts_.erase(uid);
  ProcessPod* pod = store_.Find(uid);
  if (pod == nullptr) return done(Status::Ok());
  BeginRemoval(*pod, std::move(done));
  if (!pod->running()) FinishRemoval(uid);
}

void CriHost::RemoveSandbox(const std::string& id, std::function<void(const Status&)> done) {
  Call("StopPodSandbox", Message().Text(1, id), kCallLimit,
       [this, id, done = std::move(done)](const Result<std::string>&) {
         Call("RemovePodSandbox", Message().Text(1, id), kCallLimit,
              [done](const Result<std::string>& removed) {
                const bool gone = removed.ok() || removed.status().code() == Code::kNotFound;
                done(gone ? Status::Ok() : removed.status());
              });
       });
}

// The engine releases the pod's files before they are removed. A sandbox that it fails to remove is
// found by a sweep.
void CriHost::RemoveNow(const std::string& uid) {
  auto node = store_.pods().extract(uid);
  if (node.empty()) return;
  const std::shared_ptr<ProcessPod> pod = std::move(node.mapped());
  pod->report_watch.reset();
  std::erase_if(ids_, [&](const auto& entry) { return entry.first.pod_uid == uid; });
  auto finish = [this, uid, pod](const Status& status) {
    ReleaseSubPaths(options_.data_dir, uid);
    store_.DiscardScratch(*pod);
    const Status removed = store_.DiscardDir(*pod);
    if (pod->on_removed) pod->on_removed(status.ok() ? removed : status);
  };
  const auto sandbox = sandboxes_.extract(uid);
  if (sandbox.empty() || sandbox.mapped().id.empty()) return finish(Status::Ok());
  RemoveSandbox(sandbox.mapped().id, finish);
}

void CriHost::FinishShutdown() {
  services_.reset();
  if (network_) network_->Shutdown();
  network_.reset();
  store_.Finish();
}

}  // namespace swell::cri
