// ProcessHost: ProcessRuntime's half that lives on the I/O thread: pods' directories, shims,
// networks and logs. Every method runs on the reactor's thread and answers through callbacks on it;
// ProcessRuntime carries both across.
//
// Disk layout under the data directory:
//   pods/UID/pod.json                    what the sandbox is; present as long as the pod is
//   pods/UID/etc/{hosts,hostname,resolv.conf}, pods/UID/run/{notice,report}, pods/UID/volumes/NAME
//   pods/UID/containers/NAME/ATTEMPT/    spec.json, state.json, exit.json, upper layer, tmp
//   pods/UID/logs/NAME/ATTEMPT.log
//   checkpoints/NAMESPACE/GROUP          shared by all incarnations of a job's pods, kept
//   volumes/KEY                          of claims without a volume of their own, kept
//   ready/                               directories of pods and containers to come
//   removed/                             what is about to be deleted
//
// - Threads: one thread. Blocking file operations are short and local.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/callback_scope.h"
#include "kube/net/reactor/reactor.h"
#include "kube/node/runtime.h"
#include "kube/process/background/ready_dirs.h"
#include "kube/process/background/remover.h"
#include "kube/process/files/file_watch.h"
#include "kube/process/files/image_catalogue.h"
#include "kube/process/machine/host_support.h"
#include "kube/process/machine/usage_meter.h"
#include "kube/process/network/net_probe.h"
#include "kube/process/network/pod_network.h"
#include "kube/process/network/service_proxy.h"
#include "kube/process/shim/shim_spec.h"
#include "kube/process/streams/fd_stream.h"
#include "kube/process/streams/log_reader.h"

namespace swell::edge {

struct ProcessOptions {
  std::string data_dir;
  std::vector<std::string> shim_command;  // {"/proc/self/exe", "pod-shim"}
  std::string sdk_dir;                    // Python SDK for Python images; may be empty
  std::string config_dir;                 // holds images.yaml; may be empty
  std::string cluster_cidr;               // of the pods' network; empty: one that is free
  HostOptions host;
  size_t ready_networks = 4;
  size_t ready_shims = 3;
  size_t ready_dirs = 4;  // of pods, and as many of containers
  int64_t log_bytes_max = 10 << 20;
  int log_files_max = 5;
};

class ProcessHost {
 public:
  struct Events {
    std::function<void(const node::ContainerRef&, const node::ContainerExit&)> on_exit;
    std::function<void(const std::string& pod_uid, const std::string& report)> on_report;
  };
  using Pods = std::vector<node::FoundPod>;

  // `core`: whose thread uses the streams of OpenStdio and Dial.
  ProcessHost(Executor& core,
              net::Reactor& reactor,
              ProcessOptions options,
              HostSupport support,
              ImageCatalogue catalogue,
              std::string tag,
              Events events);
  ~ProcessHost();

  // Reads what earlier runs left, makes the network. Before the reactor runs.
  Status Start();

  Pods List(const std::string& node) const;
  // An exit that the finder does not know of is told again.
  void Adopt(const node::FoundPod& pod);
  void CreateSandbox(const node::SandboxSpec& spec,
                     std::function<void(Result<node::SandboxInfo>)> done);
  void StartContainer(const node::ContainerSpec& spec,
                      std::function<void(Result<node::ContainerStarted>)> done);
  void Signal(const node::ContainerRef& ref, int signal);
  void Stop(const std::string& uid);
  void Remove(const std::string& uid, std::function<void(const Status&)> done);
  void Exec(const node::ContainerRef& ref,
            const node::ExecSpec& spec,
            std::function<void(Result<node::ExecResult>)> done);
  struct StdioJob;
  struct OpenedStdio {
    api::DuplexPtr io;
    api::DuplexPtr error;
    std::shared_ptr<StdioJob> job;
  };
  // `exited` runs once if `done` gave streams.
  void OpenStdio(const node::ContainerRef& ref,
                 const node::StdioSpec& spec,
                 std::function<void(Result<OpenedStdio>)> done,
                 std::function<void(Result<int>)> exited);
  void Resize(StdioJob& job, node::TerminalSize size);
  void HangUp(const std::shared_ptr<StdioJob>& job);
  void Dial(const std::string& uid,
            uint16_t port,
            std::function<void(Result<api::DuplexPtr>)> done);
  void Probe(const std::string& uid,
             const node::ProbeSpec& spec,
             std::function<void(node::ProbeResult)> done);
  std::vector<node::ContainerUsage> Usage(const std::string& node);
  void UpdateHosts(const std::string& uid, const std::vector<node::HostsEntry>& hosts);
  void RouteServices(const std::vector<node::ServiceRoute>& routes);
  void UpdateVolume(const std::string& uid, const node::VolumeSpec& volume);
  void WriteNotice(const std::string& uid, const std::string& json);
  // The path of a container's log, and whether more may be written to it.
  Result<std::string> LogPath(const node::ContainerRef& ref) const;
  bool IsRunning(const node::ContainerRef& ref) const;
  FileWatch* files() { return files_.get(); }
  // Called once when the container has ended (at once if it has).
  void WhenEnded(const node::ContainerRef& ref, std::function<void()> fn);

  // Removes every pod, the network and the control groups.
  void Shutdown(std::function<void()> done);

  std::string gateway() const { return network_ ? network_->gateway() : "127.0.0.1"; }
  std::string Limits() const { return support_.Limits(); }
  const HostSupport& support() const { return support_; }

 private:
  struct Container {
    node::ContainerRef ref;
    std::string dir;
    std::string log_path;
    ShimState state;
    node::ContainerStarted started;
    std::optional<node::ContainerExit> exit;
    bool running = false;
    int shim_fd = -1;  // pidfd
    int init_fd = -1;
    std::unique_ptr<net::FdWatch> shim_watch;
    std::vector<std::function<void()>> when_ended;
    ~Container();
  };
  struct Launch {
    node::ContainerRef ref;
    pid_t pid = -1;
    int fd = -1;
    std::string said;
    std::unique_ptr<net::FdWatch> watch;
    std::function<void(Result<node::ContainerStarted>)> done;
    ~Launch();
  };
  // A shim that waits to be told its container's directory.
  struct ReadyShim {
    pid_t pid = -1;
    int fd = -1;
  };
  struct Pod {
    node::SandboxSpec spec;
    node::SandboxInfo info;
    int slot = 0;  // of the network; 0: none
    std::string dir;
    std::map<std::string, std::string> volumes;  // name → path on the host
    std::map<std::string, std::unique_ptr<Container>> containers;
    std::shared_ptr<void> report_watch;
    bool stopped = false;
    std::function<void(const Status&)> removing;
  };
  struct ExecJob;
  struct DialJob;
  struct SpawnFds {
    int in = -1, out = -1, err = -1, status = -1;  // -1: /dev/null; no status
  };

  // process_host.cc
  Status LoadPod(const std::string& uid);
  void LoadContainer(Pod& pod, const std::string& name);
  Status SavePod(const Pod& pod) const;
  void MakeReadyDirs();
  Status MakePodFiles(Pod& pod);
  void FinishSandbox(const std::string& uid,
                     const std::function<void(Result<node::SandboxInfo>)>& done);
  void WatchReports(Pod& pod);
  std::string LoopbackAddress(const std::string& uid) const;
  Status WriteHosts(const Pod& pod) const;
  std::string PodDir(const std::string& uid) const;
  void RemoveNow(const std::string& uid);
  // Scratch space of one attempt; a failure is tried again when the pod is removed.
  void DiscardScratch(const std::string& container_dir);
  std::map<node::ContainerRef, node::ContainerUsage> Measure();
  void MeasureLater();
  static std::string GroupName(const node::ContainerRef& ref);
  // Of pods that are gone.
  void CleanCgroups();
  std::string ReadyDir() const;
  std::string Attic() const;
  std::string MemoryAttic() const;
  std::string MemoryDir(const std::string& uid) const;

  // process_start.cc
  Result<ShimSpec> MakeShimSpec(Pod& pod,
                                const node::ContainerSpec& spec,
                                const std::string& dir,
                                const std::string& log_path);
  std::vector<std::string> MakeEnv(const Pod& pod,
                                   const node::ContainerSpec& spec,
                                   const ImageEntry& image,
                                   const std::string& dir) const;
  Status AddMounts(Pod& pod,
                   const node::ContainerSpec& spec,
                   const ImageEntry& image,
                   const std::string& dir,
                   ShimSpec& out) const;
  Result<pid_t> Spawn(const std::vector<std::string>& arguments, const SpawnFds& fds) const;
  Result<ReadyShim> SpawnShim() const;
  Status LaunchShim(const std::string& dir, Launch& launch);
  void ReadyShims();
  void EndReadyShims();
  void OnShimSaid(const std::shared_ptr<Launch>& launch);
  void OnLaunched(const std::shared_ptr<Launch>& launch, const Status& status);
  Status WatchContainer(Container& container);
  void OnShimGone(const node::ContainerRef& ref);
  node::ContainerExit ReadExit(const Container& container) const;
  Container* Find(const node::ContainerRef& ref) const;
  void FinishExec(const std::shared_ptr<ExecJob>& job);

  // process_stdio.cc
  Status StartCommand(const Container& container,
                      const node::StdioSpec& spec,
                      const std::shared_ptr<StdioJob>& job);
  Status AttachTo(const Container& container,
                  const node::StdioSpec& spec,
                  const std::shared_ptr<StdioJob>& job);
  void Opened(const std::shared_ptr<StdioJob>& job);
  void TakeTerminal(const std::shared_ptr<StdioJob>& job);
  void OnCommandExit(const std::shared_ptr<StdioJob>& job);
  void DialNext(const std::shared_ptr<DialJob>& job);
  void OnDialed(const std::shared_ptr<DialJob>& job);

  net::Reactor& reactor_;
  ProcessOptions options_;
  HostSupport support_;
  ImageCatalogue catalogue_;
  std::string tag_;
  Events events_;
  std::map<std::string, std::unique_ptr<Pod>> pods_;
  std::unique_ptr<FileWatch> files_;
  std::unique_ptr<PodNetwork> network_;
  std::unique_ptr<ServiceProxy> services_;  // with a network
  std::set<std::shared_ptr<Launch>> launches_;
  std::deque<ReadyShim> ready_shims_;
  bool readying_ = false;
  std::set<std::shared_ptr<ExecJob>> execs_;
  FdStreams streams_;
  std::set<std::shared_ptr<StdioJob>> stdio_jobs_;
  std::set<std::shared_ptr<DialJob>> dials_;
  std::map<uint64_t, std::unique_ptr<NetProbe>> probes_;
  uint64_t next_probe_ = 1;
  RealClock clock_;
  UsageMeter meter_;
  Remover remover_;
  std::unique_ptr<ReadyDirs> pod_dirs_, container_dirs_;
  CallbackScope scope_;
};

}  // namespace swell::edge
