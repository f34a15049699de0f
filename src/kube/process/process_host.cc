#include "kube/process/process_host.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/nearest_word.h"
#include "base/random.h"
#include "base/strings.h"
#include "kube/api/objects/failure.h"
#include "kube/process/files/disk_use.h"
#include "kube/process/files/progress_records.h"
#include "kube/process/files/volumes.h"
#include "kube/process/machine/virtual_smi.h"
#include "kube/process/network/resolv_conf.h"
#include "kube/process/shim/beneath.h"
#include "kube/process/shim/id_map.h"
#include "kube/process/shim/pod_shim.h"

namespace swell::process {
namespace {

using node::ContainerRef;
using node::ContainerStarted;
using node::SandboxInfo;

// Nothing is made ahead of need while the cluster itself starts.
constexpr Duration kRefillDelay = std::chrono::seconds(1);

// The program of this machine that was probably meant; empty if none is near.
std::string MeantProgram(std::string_view name) {
  std::vector<std::string> programs;
  for (const char* dir : {"/usr/local/bin", "/usr/bin", "/bin"}) {
    if (auto names = ListDir(dir); names.ok()) {
      programs.insert(programs.end(), names->begin(), names->end());
    }
  }
  return NearestName(name, programs);
}

// A command that the image has, and this machine has not, is missed where programs of the machine
// serve the image. A misspelt one is more likely where a program has nearly its name.
Status OfStandIn(const std::string& image, const Status& why) {
  constexpr std::string_view kBefore = "exec: \"";
  constexpr std::string_view kMissing = "executable file not found in $PATH";
  const std::string& said = why.message();
  // A file that is there and cannot be run is not the image's affair.
  const bool missing = said.ends_with(kMissing) || said.ends_with("no such file or directory");
  if (!said.starts_with("exec: ") || !missing) return why;
  const std::string served = StrCat(api::kServedByMachine, image);
  const std::string pull = StrCat("; swell images pull ", image, " gets its own");
  const std::string_view after = "\": ";
  if (!said.starts_with(kBefore) || !said.ends_with(StrCat(after, kMissing))) {
    return Status(why.code(), StrCat(said, "; ", served, pull));
  }
  const std::string name =
      said.substr(kBefore.size(), said.size() - kBefore.size() - after.size() - kMissing.size());
  const std::string meant = MeantProgram(name);
  return Status(why.code(), StrCat("there is no program ", name, DidYouMean(meant), " (", kMissing,
                                   "; ", served, meant.empty() ? pull : "", ")"));
}

}  // namespace

ProcessHost::ProcessHost(Executor& core,
                         net::Reactor& reactor,
                         ProcessOptions options,
                         HostSupport support,
                         ImageCatalogue catalogue,
                         std::string tag,
                         Events events)
    : ContainerHost(core,
                    reactor,
                    {.data_dir = options.data_dir,
                     .tag = tag,
                     .isolation = support.isolation,
                     .ready_dirs = options.ready_dirs,
                     .keep_logs = options.keep_logs,
                     .post = [&reactor](std::function<void()> fn) { reactor.Post(std::move(fn)); }},
                    std::move(events)),
      options_(std::move(options)),
      support_(std::move(support)),
      catalogue_(std::move(catalogue)),
      seccomp_(options_.data_dir),
      tag_(std::move(tag)),
      images_(options_.image_store),
      launcher_(reactor, options_.shim_command, options_.ready_shims, ShimGroup(support_.cgroups)),
      execs_(reactor, launcher_, streams_) {}

ProcessHost::~ProcessHost() { scope_.Close(); }

// ---- what earlier runs left ----

Status ProcessHost::Start() {
  SWELL_RETURN_IF_ERROR(StartFiles());
  for (const auto& [uid, pod] : store_.pods()) {
    RestoreContainers(*pod);
    WatchReports(*pod);
  }
  if (support_.network) {
    Status started = StartNetwork();
    if (!started.ok()) {
      network_.reset();
      support_.network = false;
      support_.users = false;
      support_.missing.push_back(
          StrCat("pods share the host's network, so their ports must differ, and its user ids: ",
                 started.message()));
    }
  }
  CleanCgroups();
  reactor_.After(kRefillDelay, scope_.Wrap([this] {
    launcher_.Refill();
    store_.Refill();
  }));
  StartWatching();
  return Status::Ok();
}

void ProcessHost::RestoreContainers(ProcessPod& pod) {
  for (const auto& [name, container] : pod.containers) {
    const ShimState& state = container->state;
    const bool alive = state.shim_start != 0 &&
                       ProcessStartTime(state.shim_pid) == state.shim_start &&
                       !FileExists(container->dir + "/exit.json");
    container->running = alive && Watch(*container).ok();
    if (!container->running) container->exit = ReadExit(*container, clock_.Now());
  }
}

Status ProcessHost::StartNetwork() {
  std::set<int> slots;
  for (const auto& [uid, pod] : store_.pods()) {
    if (pod->slot > 0) slots.insert(pod->slot);
  }
  network_ = std::make_unique<PodNetwork>(PodNetwork::Options{
      .dir = options_.data_dir + "/run/netns",
      .tag = tag_,
      .cidr = options_.cluster_cidr,
      .ready = options_.ready_networks,
      .users = support_.users,
      .post = [this](std::function<void()> fn) { reactor_.Post(std::move(fn)); }});
  SWELL_RETURN_IF_ERROR(network_->Start(slots));
  if (const Status& guarded = network_->guarded(); !guarded.ok()) {
    support_.missing.push_back(
        StrCat("pods with NET_RAW can take each other's addresses: ", guarded.message()));
  }
  const Status kept = support_.users
                          ? GuardMachine(MachineGuard())
                          : Status(Code::kUnavailable, "pods have no user ids of their own");
  if (!kept.ok()) {
    support_.missing.push_back(StrCat(
        "git-sync containers reach services on this machine's own addresses: ", kept.message()));
  }
  StartFirewall();
  auto judge = [this](const std::string& from, const node::ServiceBackend& to) {
    return firewall_->Allows(from, to.ip, to.port);
  };
  services_ = std::make_unique<ServiceProxy>(reactor_, network_->bridge(), judge);
  return Status::Ok();
}

MachineGuardSpec ProcessHost::MachineGuard() const {
  return {.table = network_->bridge() + "_host",
          .bridge = network_->bridge(),
          .first_id = kFirstRangeOfIds * kIdsOfPod,
          .last_id = (kFirstRangeOfIds + kRangesOfIds) * kIdsOfPod - 1};
}

void ProcessHost::StartFirewall() {
  firewall_ = std::make_unique<Firewall>(
      network_->RulesScope(), [this](std::function<void()> fn) { reactor_.Post(std::move(fn)); });
  const Status usable = firewall_->Start();
  if (usable.ok()) return;
  support_.missing.push_back(
      StrCat("NetworkPolicies and isolated projects have no effect: ", usable.message()));
}

// ---- sandboxes ----

std::string ProcessHost::LoopbackAddress(const std::string& uid) const {
  // A hash of 24 bits; one that is taken is hashed again.
  uint64_t hash = StableHash(uid, StableHash(tag_));
  for (int i = 0; i < 64; ++i) {
    std::string ip =
        StrCat("127.", 1 + hash % 250, ".", (hash >> 8) % 256, ".", 1 + (hash >> 16) % 254);
    bool taken = std::any_of(store_.pods().begin(), store_.pods().end(),
                             [&](const auto& entry) { return entry.second->info.ip == ip; });
    if (!taken) return ip;
    hash = StableHash(ip, hash);
  }
  return "127.0.0.1";
}

void ProcessHost::CreateSandbox(const node::SandboxSpec& spec,
                                std::function<void(Result<SandboxInfo>)> done) {
  const bool own_network = network_ != nullptr && !spec.host_network;
  std::string resolv_conf;
  if (!spec.dns.alone) {
    auto read = ReadFile("/etc/resolv.conf", 65536);
    if (read.ok()) resolv_conf = std::move(*read);
    if (own_network) resolv_conf = network_->ResolvConf(resolv_conf);
  }
  auto created = store_.Create(spec, WithPodsDns(resolv_conf, spec.dns));
  if (!created.ok()) return done(created.status());
  if (!own_network) {
    (*created)->info.ip = spec.host_network ? spec.host_ip : LoopbackAddress(spec.pod_uid);
    return FinishSandbox(**created, done);
  }
  network_->Acquire([this, uid = spec.pod_uid, done = std::move(done)](Result<NetworkLease> lease) {
    ProcessPod* pod = store_.Find(uid);
    if (pod == nullptr) {
      if (lease.ok()) network_->Release(lease->slot);
      return done(Status(Code::kInternal, "the pod was removed"));
    }
    if (!lease.ok()) return done(lease.status());
    pod->slot = lease->slot;
    pod->info.ip = lease->ip;
    FinishSandbox(*pod, done);
  });
}

void ProcessHost::FinishSandbox(ProcessPod& pod,
                                const std::function<void(Result<SandboxInfo>)>& done) {
  Status status = ChooseUsers(pod);
  if (status.ok()) status = store_.WriteHosts(pod);
  if (status.ok()) status = store_.Save(pod);
  if (!status.ok()) return done(status);
  WatchReports(pod);
  done(pod.info);
}

// Whether the pod gets user ids of its own. It does unless it is to share something of the node
// that only the node's ids make sense for.
Status ProcessHost::ChooseUsers(ProcessPod& pod) {
  const node::PodSecurity& security = pod.spec.security;
  const bool shares =
      security.privileged || security.host_pid || security.host_ipc || pod.spec.host_network;
  const bool asked = security.host_users == false;
  auto without = [asked](std::string_view why) {
    if (!asked) return Status::Ok();
    return Status(Code::kNotAcceptable, StrCat("spec.hostUsers: false: ", why));
  };
  if ((security.host_pid || security.host_ipc) && support_.isolation != Isolation::kFull) {
    return Status(Code::kNotAcceptable,
                  "spec.hostPID, spec.hostIPC: this node was not started by root");
  }
  const bool own_network = pod.slot > 0;
  if (!security.sysctls.empty() && !own_network) {
    return Status(Code::kNotAcceptable,
                  "securityContext.sysctls: pods share the network of this node");
  }
  if (security.host_users == true) return Status::Ok();
  if (shares) {
    return without("excludes privileged containers, hostNetwork, hostPID and hostIPC");
  }
  const std::string path = own_network ? network_->LeaseOf(pod.slot).users : "";
  if (path.empty()) return without("this machine has no user namespaces for pods");
  // A user who is not root may keep the machine's ids, and so the files. Root may not, nor may one
  // whose author could have named anybody's.
  const bool keeps_ids = security.never_root && !security.ids_chosen;
  if (security.highest_id >= kIdsOfPod) {
    const std::string why =
        StrCat("the pod names the id ", security.highest_id, "; it has 0 to ", kIdsOfPod - 1);
    if (keeps_ids) return without(why);
    return Status(Code::kNotAcceptable,
                  StrCat("securityContext: ", why, "; with hostUsers: true it has the machine's"));
  }
  const UniqueFd users(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!users.valid()) return ErrnoStatus(errno, "open " + path);
  for (auto& [name, volume] : pod.volumes) {
    if (store_.IsInMemory(pod, volume) || KeepsOwners(volume.path, users)) continue;
    if (keeps_ids) {
      return without(StrCat("the file system of volume ", Quote(name), " cannot translate owners"));
    }
    volume.owners = ShimMount::Owners::kNobody;
  }
  pod.own_users = true;
  return store_.GiveMemory(pod, network_->LeaseOf(pod.slot).first_id);
}

bool ProcessHost::KeepsOwners(const std::string& path, const UniqueFd& users) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return true;  // the shim says what is wrong
  auto known = keeps_owners_.find(info.st_dev);
  if (known == keeps_owners_.end()) {
    constexpr size_t kKnownMax = 1000;
    if (keeps_owners_.size() >= kKnownMax) keeps_owners_.clear();
    const bool keeps = CheckMappable(path, users.get()).ok();
    known = keeps_owners_.emplace(info.st_dev, keeps).first;
  }
  return known->second;
}

PodNamespaces ProcessHost::NamespacesOf(const ProcessPod& pod) const {
  if (pod.slot <= 0) return {};
  const NetworkLease lease = network_->LeaseOf(pod.slot);
  if (!pod.own_users) return {lease.path, "", 0};
  return {lease.path, lease.users, lease.first_id};
}

std::string ProcessHost::NetworkOf(const ProcessPod& pod) const { return NamespacesOf(pod).net; }

std::string ProcessHost::GroupOf(const ProcessContainer& container) const {
  if (support_.cgroups.version != 2) return "";
  return CgroupOf(support_.cgroups.memory_dir, CgroupNameOf(container.ref));
}

void ProcessHost::ReleaseNetwork(ProcessPod& pod) {
  if (pod.slot > 0) network_->Release(std::exchange(pod.slot, 0));
}

std::vector<node::RouteFault> ProcessHost::RouteServices(
    const std::vector<node::ServiceRoute>& routes) {
  if (!services_) return {};
  auto faults = services_->Update(routes);
  firewall_->SetServices(services_->ClusterPorts());
  return faults;
}

void ProcessHost::EnforceRules(node::SharedRules rules, std::function<void(Status)> done) {
  if (firewall_) return firewall_->Enforce(std::move(rules), std::move(done));
  done(Status(Code::kUnavailable, "pods have no networks of their own"));
}

// ---- containers ----

void ProcessHost::StartContainer(const node::ContainerSpec& spec,
                                 std::function<void(Result<ContainerStarted>)> done) {
  const ContainerRef& ref = spec.ref;
  if (spec.image_handle.empty()) {
    done = [done = std::move(done), image = spec.image](Result<ContainerStarted> result) {
      result.ok() ? done(std::move(result)) : done(OfStandIn(image, result.status()));
    };
  }
  const ProcessPod* pod = store_.Find(ref.pod_uid);
  if (pod == nullptr) return done(Status(Code::kInternal, "the pod has no sandbox"));
  if (!IsPlainName(ref.name)) {
    return done(Status(Code::kInvalid, StrCat("container ", Quote(ref.name), ": bad name")));
  }
  Status launched = [&]() -> Status {
    SWELL_ASSIGN_OR_RETURN(const ShimSpec shim, PrepareContainer(*pod, spec));
    return launcher_.Launch(
        ref.pod_uid, pod->ContainerDir(ref),
        [this, ref, stop_signal = shim.stop_signal, done](const Result<pid_t>& pid) {
          OnLaunched(ref, stop_signal, pid, done);
        });
  }();
  if (!launched.ok()) done(launched);
}

Result<ShimSpec> ProcessHost::PrepareContainer(const ProcessPod& pod,
                                               const node::ContainerSpec& spec) {
  const ShimDefaults defaults{
      support_, catalogue_, images_, store_, options_.log_bytes_max, options_.log_files_max,
      seccomp_};
  SWELL_RETURN_IF_ERROR(store_.CreateContainerDir(pod, spec.ref));
  SWELL_RETURN_IF_ERROR(PrepareVirtualGpus(pod, spec));
  SWELL_ASSIGN_OR_RETURN(ShimSpec shim, MakeShimSpec(defaults, pod, spec, NamespacesOf(pod)));
  const std::string dir = pod.ContainerDir(spec.ref);
  SWELL_RETURN_IF_ERROR(ReplaceFile(dir + "/spec.json", json::Print(shim.ToJson()), 0600));
  // After the spec, whose presence says that the container is to run.
  if (!spec.image_handle.empty()) {
    SWELL_RETURN_IF_ERROR(images_.MarkUsed(spec.image_handle, CgroupNameOf(spec.ref), dir));
  }
  return shim;
}

void ProcessHost::OnLaunched(const ContainerRef& ref,
                             int stop_signal,
                             const Result<pid_t>& pid,
                             const std::function<void(Result<ContainerStarted>)>& done) {
  ProcessPod* pod = store_.Find(ref.pod_uid);
  if (!pid.ok()) {
    done(pid.status());
    if (pod != nullptr && pod->on_removed) FinishRemoval(ref.pod_uid);
    return;
  }
  auto container =
      pod != nullptr ? Track(*pod, ref) : Status(Code::kInternal, "the pod was removed");
  if (!container.ok()) {
    KillAndReap(*pid);
    return done(container.status());
  }
  (*container)->stop_signal = stop_signal;
  const ContainerStarted started = (*container)->started;
  pod->containers[ref.name] = std::move(*container);
  done(started);
  if (pod->on_removed) Signal(ref, SIGKILL);
}

Result<std::unique_ptr<ProcessContainer>> ProcessHost::Track(const ProcessPod& pod,
                                                             const ContainerRef& ref) {
  auto container = std::make_unique<ProcessContainer>();
  container->ref = ref;
  container->dir = pod.ContainerDir(ref);
  container->log_path = pod.LogPath(ref);
  SWELL_ASSIGN_OR_RETURN(container->state, ReadShimState(container->dir));
  SWELL_RETURN_IF_ERROR(Watch(*container));
  container->running = true;
  container->started = {ContainerIdOf(ref), "", {container->state.started_ns}};
  return container;
}

Status ProcessHost::Watch(ProcessContainer& container) {
  container.shim_fd = OpenPidFd(container.state.shim_pid);
  if (!container.shim_fd.valid()) return ErrnoStatus(errno, "watch the pod shim");
  // Fails where the container has ended already: then the shim ends too, which is watched.
  container.init_fd = OpenPidFd(container.state.init_pid);
  if (ProcessStartTime(container.state.init_pid) != container.state.init_start) {
    container.init_fd.Reset();
  }
  SWELL_ASSIGN_OR_RETURN(
      container.shim_watch,
      reactor_.WatchFd(container.shim_fd.get(), [this, ref = container.ref] { OnShimExit(ref); }));
  return Status::Ok();
}

void ProcessHost::OnShimExit(const ContainerRef& ref) {
  ProcessContainer* container = store_.Find(ref);
  if (container == nullptr || !container->running) return;
  siginfo_t info;
  // Fails where an earlier run of swell started the shim: it is not a child of this process.
  ::waitid(P_PIDFD, static_cast<id_t>(container->shim_fd.get()), &info, WEXITED | WNOHANG);
  container->running = false;
  container->exit = ReadExit(*container, clock_.Now());
  ReportExit(*container);
  const ProcessPod* pod = store_.Find(ref.pod_uid);
  if (pod == nullptr || !pod->on_removed || pod->running()) return;
  reactor_.Post(scope_.Wrap([this, uid = ref.pod_uid] { FinishRemoval(uid); }));
}

void ProcessHost::Signal(const ContainerRef& ref, int signal) {
  const ProcessContainer* container = store_.Find(ref);
  if (container == nullptr || !container->running || !container->init_fd.valid()) return;
  if (signal == SIGTERM && container->stop_signal != 0) signal = container->stop_signal;
  // The first process of a namespace takes all others along.
  if (signal == SIGKILL && !container->state.own_pids) signal = KillAllSignal();
  ::syscall(SYS_pidfd_send_signal, container->init_fd.get(), signal, nullptr, 0);
}

void ProcessHost::Resize(const ContainerRef& ref,
                         const node::CpuAndMemory& amounts,
                         std::function<void(const Status&)> done) {
  if (ref.name.empty()) return done(ResizeCgroups(support_.cgroups, ref.pod_uid, amounts));
  const Status running = FindRunning(ref).status();
  done(running.ok() ? ResizeCgroups(support_.cgroups, CgroupNameOf(ref), amounts) : running);
}

// ---- commands, connections and probes ----

void ProcessHost::Exec(const ContainerRef& ref,
                       const node::ExecSpec& spec,
                       std::function<void(Result<node::ExecResult>)> done) {
  auto container = FindRunning(ref);
  if (!container.ok()) return done(container.status());
  execs_.Run(**container, spec, std::move(done));
}

void ProcessHost::OpenStdio(const ContainerRef& ref,
                            const node::StdioSpec& spec,
                            std::function<void(Result<ExecSessions::Opened>)> done,
                            std::function<void(Result<int>)> exited) {
  auto container = FindRunning(ref);
  if (!container.ok()) return done(container.status());
  execs_.Open(**container, spec, std::move(done), std::move(exited));
}

// ---- the end ----

void ProcessHost::Stop(const std::string& uid) {
  ProcessPod* pod = store_.Find(uid);
  if (pod == nullptr || pod->stopped || pod->running()) return;
  pod->stopped = true;
  pod->report_watch.reset();
  ReleaseNetwork(*pod);
  store_.DiscardScratch(*pod);
  Status saved = store_.Save(*pod);
  if (!saved.ok()) SWELL_LOG_WARNING("process", "pod not saved", {"error", saved.ToString()});
}

void ProcessHost::Remove(const std::string& uid, std::function<void(const Status&)> done) {
  ProcessPod* pod = store_.Find(uid);
  if (pod == nullptr) return done(Status::Ok());
  BeginRemoval(*pod, std::move(done));
  if (!pod->running() && !launcher_.IsLaunching(uid)) FinishRemoval(uid);
}

void ProcessHost::RemoveNow(const std::string& uid) {
  Stop(uid);
  auto node = store_.pods().extract(uid);
  if (node.empty()) return;
  const std::unique_ptr<ProcessPod> pod = std::move(node.mapped());
  ReleaseNetwork(*pod);
  Status removed = store_.DiscardDir(*pod);
  CleanCgroups();
  if (pod->on_removed) pod->on_removed(removed);
}

void ProcessHost::CleanCgroups() {
  process::CleanCgroups(support_.cgroups,
                        [this](const std::string& uid) { return store_.pods().contains(uid); });
}

void ProcessHost::FinishShutdown() {
  services_.reset();
  if (firewall_) firewall_->Shutdown();
  firewall_.reset();
  if (network_) {
    if (support_.users) UnguardMachine(MachineGuard());
    network_->Shutdown();
  }
  network_.reset();
  CleanCgroups();
  launcher_.EndReady();
  RemoveCgroups(support_.cgroups);
  store_.Finish();
}

}  // namespace swell::process
