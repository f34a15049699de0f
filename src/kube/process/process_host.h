// ProcessHost: the ContainerHost whose containers are processes of this machine. It adds shims
// (ShimLauncher), commands (ExecSessions), networks and the firewall.
//
// - Threads: the reactor's.
// - Ownership: core and reactor outlive the host. Running containers outlive it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kube/images/store.h"
#include "kube/node/runtime/runtime.h"
#include "kube/process/container_host.h"
#include "kube/process/exec_sessions.h"
#include "kube/process/files/image_catalogue.h"
#include "kube/process/machine/host_support.h"
#include "kube/process/network/firewall.h"
#include "kube/process/network/machine_guard.h"
#include "kube/process/network/pod_network.h"
#include "kube/process/network/service_proxy.h"
#include "kube/process/shim_launcher.h"
#include "kube/process/shim_spec_builder.h"

namespace swell::process {

struct ProcessOptions {
  std::string data_dir;
  std::vector<std::string> shim_command;  // {"/proc/self/exe", "pod-shim"}
  std::string sdk_dir;                    // Python SDK for Python images; may be empty
  std::string python;                     // see ImageCatalogue::Options
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

class ProcessHost final : public ContainerHost {
 public:
  ProcessHost(Executor& core,
              net::Reactor& reactor,
              ProcessOptions options,
              HostSupport support,
              ImageCatalogue catalogue,
              std::string tag,
              Events events);
  ~ProcessHost() override;

  // Reads what earlier runs left, makes the network. Before the reactor runs.
  Status Start();

  void CreateSandbox(const node::SandboxSpec& spec,
                     std::function<void(Result<node::SandboxInfo>)> done) override;
  void StartContainer(const node::ContainerSpec& spec,
                      std::function<void(Result<node::ContainerStarted>)> done) override;
  void Signal(const node::ContainerRef& ref, int signal) override;
  void Resize(const node::ContainerRef& ref,
              const node::CpuAndMemory& amounts,
              std::function<void(const Status&)> done) override;
  void Stop(const std::string& uid) override;
  void Remove(const std::string& uid, std::function<void(const Status&)> done) override;
  void Exec(const node::ContainerRef& ref,
            const node::ExecSpec& spec,
            std::function<void(Result<node::ExecResult>)> done) override;
  std::vector<node::RouteFault> RouteServices(
      const std::vector<node::ServiceRoute>& routes) override;
  // `exited` runs once if `done` gave streams.
  void OpenStdio(const node::ContainerRef& ref,
                 const node::StdioSpec& spec,
                 std::function<void(Result<ExecSessions::Opened>)> done,
                 std::function<void(Result<int>)> exited);
  // `done` runs once the kernel keeps the rules, or cannot.
  void EnforceRules(node::SharedRules rules, std::function<void(Status)> done);

  std::string gateway() const { return network_ ? network_->gateway() : "127.0.0.1"; }
  const HostSupport& support() const { return support_; }

 protected:
  std::string NetworkOf(const ProcessPod& pod) const override;
  std::string GroupOf(const ProcessContainer& container) const override;
  void FinishShutdown() override;

 private:
  void RestoreContainers(ProcessPod& pod);
  Status StartNetwork();
  void StartFirewall();
  MachineGuardSpec MachineGuard() const;
  void FinishSandbox(ProcessPod& pod, const std::function<void(Result<node::SandboxInfo>)>& done);
  std::string LoopbackAddress(const std::string& uid) const;
  PodNamespaces NamespacesOf(const ProcessPod& pod) const;
  Status ChooseUsers(ProcessPod& pod);
  bool KeepsOwners(const std::string& path, const UniqueFd& users);
  void ReleaseNetwork(ProcessPod& pod);
  Result<ShimSpec> PrepareContainer(const ProcessPod& pod, const node::ContainerSpec& spec);
  void OnLaunched(const node::ContainerRef& ref,
                  int stop_signal,
                  const Result<pid_t>& pid,
                  const std::function<void(Result<node::ContainerStarted>)>& done);
  Result<std::unique_ptr<ProcessContainer>> Track(const ProcessPod& pod,
                                                  const node::ContainerRef& ref);
  Status Watch(ProcessContainer& container);
  void OnShimExit(const node::ContainerRef& ref);
  void RemoveNow(const std::string& uid) override;
  // Removes the control groups of pods that are gone.
  void CleanCgroups();

  ProcessOptions options_;
  HostSupport support_;
  ImageCatalogue catalogue_;
  SeccompProfiles seccomp_;
  std::map<uint64_t, bool> keeps_owners_;  // by the device of a file system
  std::string tag_;
  std::unique_ptr<PodNetwork> network_;
  images::ImageStore images_;
  ShimLauncher launcher_;
  std::unique_ptr<Firewall> firewall_;      // with a network
  std::unique_ptr<ServiceProxy> services_;  // the same
  ExecSessions execs_;
};

}  // namespace swell::process
