// ProcessHost: ProcessRuntime's half on the I/O thread. It joins the directories of pods
// (PodStore), their shims (ShimLauncher), commands (ExecSessions), networks and usage.
//
// Every method answers through callbacks on the same thread; ProcessRuntime carries calls and
// answers between the threads.
//
// - Threads: the reactor's.
// - Ownership: core and reactor outlive the host. Running containers outlive it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/callback_scope.h"
#include "kube/images/store.h"
#include "kube/net/reactor/reactor.h"
#include "kube/node/runtime.h"
#include "kube/process/background/idle_worker.h"
#include "kube/process/exec_sessions.h"
#include "kube/process/files/file_watch.h"
#include "kube/process/files/image_catalogue.h"
#include "kube/process/machine/host_support.h"
#include "kube/process/machine/usage_meter.h"
#include "kube/process/network/firewall.h"
#include "kube/process/network/machine_guard.h"
#include "kube/process/network/net_probe.h"
#include "kube/process/network/pod_network.h"
#include "kube/process/network/service_proxy.h"
#include "kube/process/pod_dialer.h"
#include "kube/process/pod_store.h"
#include "kube/process/shim_launcher.h"
#include "kube/process/shim_spec_builder.h"

namespace swell::edge {

struct ProcessOptions {
  std::string data_dir;
  std::vector<std::string> shim_command;  // {"/proc/self/exe", "pod-shim"}
  std::string sdk_dir;                    // Python SDK for Python images; may be empty
  std::string config_dir;                 // holds images.yaml, registries.yaml; may be empty
  std::string image_store;                // empty: images/ in the data directory
  std::string cluster_cidr;               // of the pods' network; empty: one that is free
  HostOptions host;
  size_t ready_networks = 4;
  size_t ready_shims = 3;
  size_t ready_dirs = 4;   // of pods, and as many of containers
  bool keep_logs = false;  // of jobs' pods that are gone: somebody must call ForgetJob
  int64_t log_bytes_max = 10 << 20;
  int log_files_max = 5;
};

class ProcessHost {
 public:
  struct Events {
    std::function<void(const node::ContainerRef&, const node::ContainerExit&)> on_exit;
    std::function<void(const std::string& pod_uid, const std::string& report)> on_report;
    std::function<void(const std::string& pod_uid, const node::ProgressRecords&)> on_progress;
  };

  // `core` is the executor that uses the streams of OpenStdio and Dial.
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

  std::vector<node::FoundPod> List(const std::string& node) const;
  // Reports exits that the finder does not know of.
  void Adopt(const node::FoundPod& pod);
  void CreateSandbox(const node::SandboxSpec& spec,
                     std::function<void(Result<node::SandboxInfo>)> done);
  void StartContainer(const node::ContainerSpec& spec,
                      std::function<void(Result<node::ContainerStarted>)> done);
  void Signal(const node::ContainerRef& ref, int signal);
  Status Resize(const node::ContainerRef& ref, const node::CpuAndMemory& amounts);
  void Stop(const std::string& uid);
  void Remove(const std::string& uid, std::function<void(const Status&)> done);
  void Exec(const node::ContainerRef& ref,
            const node::ExecSpec& spec,
            std::function<void(Result<node::ExecResult>)> done);
  // `exited` runs once if `done` gave streams.
  void OpenStdio(const node::ContainerRef& ref,
                 const node::StdioSpec& spec,
                 std::function<void(Result<ExecSessions::Opened>)> done,
                 std::function<void(Result<int>)> exited);
  void Dial(const std::string& uid, uint16_t port, PodDialer::Done done);
  void Probe(const std::string& uid,
             const node::ProbeSpec& spec,
             std::function<void(node::ProbeResult)> done);
  std::vector<node::ContainerUsage> Usage(const std::string& node);
  // `done` runs on a thread of its own.
  void MeasureDisk(const std::string& uid, std::function<void(node::DiskUse)> done);
  void UpdateHosts(const std::string& uid, const std::vector<node::HostsEntry>& hosts);
  std::vector<node::RouteFault> RouteServices(const std::vector<node::ServiceRoute>& routes);
  // `done` runs once the kernel keeps the rules, or cannot.
  void EnforceRules(node::SharedRules rules, std::function<void(Status)> done);
  void UpdateVolume(const std::string& uid, const node::VolumeSpec& volume);
  void WriteNotice(const std::string& uid, const std::string& json);
  Result<std::string> LogPath(const node::ContainerRef& ref, const std::string& kept_of) const {
    return store_.LogPath(ref, kept_of);
  }
  KeptLogs& kept_logs() { return store_.kept_logs(); }
  // More may be written to its log.
  bool IsRunning(const node::ContainerRef& ref) const;
  FileWatch* files() { return files_.get(); }
  // Calls `fn` once, later, when the container has ended.
  void WhenEnded(const node::ContainerRef& ref, std::function<void()> fn);

  // Removes every pod that has not ended, the network and the control groups. Ended pods keep their
  // logs for the next start.
  void Shutdown(std::function<void()> done);

  std::string gateway() const { return network_ ? network_->gateway() : "127.0.0.1"; }
  const HostSupport& support() const { return support_; }

 private:
  struct DiskPlaces;
  DiskPlaces PlacesOf(const ProcessPod& pod) const;
  void RestoreContainers(ProcessPod& pod);
  Status StartNetwork();
  void StartFirewall();
  MachineGuardSpec MachineGuard() const;
  void FinishSandbox(ProcessPod& pod, const std::function<void(Result<node::SandboxInfo>)>& done);
  void WatchReports(ProcessPod& pod);
  void ReadReport(const ProcessPod& pod, const std::string& file);
  void ReadProgressLater();
  // Tells of the pod's records if they have changed. False: it has written no records.
  bool TellProgress(const std::string& uid, const ProcessPod& pod);
  std::string LoopbackAddress(const std::string& uid) const;
  PodNamespaces NamespacesOf(const ProcessPod& pod) const;
  Status ChooseUsers(ProcessPod& pod);
  bool KeepsOwners(const std::string& path, const UniqueFd& users);
  void ReleaseNetwork(ProcessPod& pod);
  Result<ProcessContainer*> FindRunning(const node::ContainerRef& ref) const;
  Result<ShimSpec> PrepareContainer(const ProcessPod& pod, const node::ContainerSpec& spec);
  void OnLaunched(const node::ContainerRef& ref,
                  int stop_signal,
                  const Result<pid_t>& pid,
                  const std::function<void(Result<node::ContainerStarted>)>& done);
  Result<std::unique_ptr<ProcessContainer>> Track(const ProcessPod& pod,
                                                  const node::ContainerRef& ref);
  Status Watch(ProcessContainer& container);
  void OnShimExit(const node::ContainerRef& ref);
  void RemoveNow(const std::string& uid);
  void FinishShutdown();
  std::map<node::ContainerRef, node::ContainerUsage> Measure();
  void MeasureLater();
  std::vector<const ProcessContainer*> WithVirtualGpus() const;
  void ShowUsage(const std::vector<const ProcessContainer*>& containers,
                 const std::map<node::ContainerRef, node::ContainerUsage>& usage) const;
  // Removes the control groups of pods that are gone.
  void CleanCgroups();

  net::Reactor& reactor_;
  ProcessOptions options_;
  HostSupport support_;
  ImageCatalogue catalogue_;
  SeccompProfiles seccomp_;
  std::map<uint64_t, bool> keeps_owners_;  // by the device of a file system
  std::string tag_;
  Events events_;
  std::unique_ptr<FileWatch> files_;
  std::unique_ptr<PodNetwork> network_;
  PodStore store_;
  images::ImageStore images_;
  ShimLauncher launcher_;
  std::unique_ptr<Firewall> firewall_;      // with a network
  std::unique_ptr<ServiceProxy> services_;  // the same
  FdStreams streams_;
  ExecSessions execs_;
  PodDialer dialer_;
  std::map<uint64_t, std::unique_ptr<NetProbe>> probes_;
  uint64_t next_probe_ = 1;
  RealClock clock_;
  UsageMeter meter_;
  SteadyTime last_measured_;
  std::unique_ptr<IdleWorker> disks_;  // measures what pods have on disk; from the first one on
  std::map<std::string, node::ProgressRecords> progress_;  // by pod uid, as last told
  CallbackScope scope_;
};

}  // namespace swell::edge
