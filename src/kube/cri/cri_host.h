// CriHost: the ContainerHost whose containers an engine runs (containerd, CRI-O), through the
// Container Runtime Interface, version v1.
//
// The engine knows what runs: it is asked at the start, every second while containers run, and when
// the first process of a container ends. PodStore makes the pods' files, volumes and log folders;
// the engine mounts them, and writes the logs.
//
// - Threads: the reactor's. The client calls back on its own thread, which posts here.
// - Ownership: client, core and reactor outlive the host. Containers outlive it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kube/cri/answers.h"
#include "kube/cri/grpc_client.h"
#include "kube/cri/requests.h"
#include "kube/process/container_host.h"
#include "kube/process/network/pod_network.h"
#include "kube/process/network/service_proxy.h"

namespace swell::cri {

struct CriOptions {
  std::string socket;
  std::string data_dir;
  std::string instance;      // six characters that stand for the data directory
  std::string cluster_cidr;  // of the bridge by which pods reach this machine; empty: one is chosen
  bool keep_logs = false;    // of jobs' pods that are gone
  int64_t log_bytes_max = 10 << 20;
  int log_files_max = 5;
};

class CriHost final : public process::ContainerHost {
 public:
  CriHost(Executor& core,
          net::Reactor& reactor,
          CriOptions options,
          GrpcClient& client,
          Engine engine,
          Events events);
  ~CriHost() override;

  // Finds the pods of earlier runs. Blocks; call it before the reactor runs.
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
  // Adds what containers wrote to their root file systems, which the engine measures.
  void MeasureDisk(const std::string& uid, std::function<void(node::DiskUse)> done) override;
  std::vector<node::RouteFault> RouteServices(
      const std::vector<node::ServiceRoute>& routes) override;
  // The URL at which the engine serves the streams of the command, or of the container's own
  // process if `argv` is empty.
  void OpenStream(const node::ContainerRef& ref,
                  const node::StdioSpec& spec,
                  std::function<void(Result<std::string>)> done);

  std::string gateway() const { return network_ ? network_->gateway() : ""; }
  // What pods lack on this machine.
  const std::vector<std::string>& missing() const { return missing_; }

 protected:
  std::string NetworkOf(const process::ProcessPod& pod) const override;
  std::string GroupOf(const process::ProcessContainer&) const override { return ""; }
  void FinishShutdown() override;

 private:
  struct Sandbox {
    std::string id;
    std::string config;  // PodSandboxConfig
    std::string netns;
  };
  using Answer = std::function<void(Result<std::string>)>;
  struct Launch;
  struct DiskSum;

  // Calls runtime.v1.RuntimeService; the answer comes on this thread.
  void Call(std::string_view method, const Message& message, Duration deadline, Answer done);
  Status StartNetwork();
  // Finds the interface by which pods reach this machine, once, from the address of one of them.
  void FindPodsDevice(const std::string& pod_ip);
  // Finds the sandboxes and containers that earlier runs of this cluster left in the engine.
  Status Restore();
  Status RestoreContainer(const ListedContainer& listed);
  void OnSandbox(const std::string& uid,
                 const std::function<void(Result<node::SandboxInfo>)>& done,
                 const Result<std::string>& answer);
  // Forgets a pod that has no sandbox, and removes its files.
  Status DiscardPod(const std::string& uid);
  void FinishSandbox(const std::string& uid,
                     const std::function<void(Result<node::SandboxInfo>)>& done,
                     const Result<std::string>& status);
  void Create(const std::shared_ptr<Launch>& launch, const ImageInfo& image);
  void Begin(const std::shared_ptr<Launch>& launch);
  void OnBegun(const std::shared_ptr<Launch>& launch, const Result<std::string>& status);
  void GiveUp(const std::shared_ptr<Launch>& launch, const Status& why);
  std::unique_ptr<process::ProcessContainer> Track(const process::ProcessPod& pod,
                                                   const node::ContainerRef& ref,
                                                   const std::string& id,
                                                   const ContainerState& state);
  node::ContainerExit ExitOf(const process::ProcessContainer& container,
                             const ContainerState& state) const;
  void WatchProcess(process::ProcessContainer& container, pid_t pid);
  // Asks up to `tries` times whether the container has ended.
  void AskForEnd(const node::ContainerRef& ref, int tries);
  void OnEnd(const node::ContainerRef& ref, const ContainerState& state);
  void PollLater();
  void OnList(const Result<std::string>& answer);
  void SweepLater();
  void Sweep(const Result<std::string>& answer);
  void RotateLogs();
  void RemoveSandbox(const std::string& id, std::function<void(const Status&)> done);
  void RemoveNow(const std::string& uid) override;
  std::string IdOf(const node::ContainerRef& ref) const;
  std::string ConfigFile(const process::ProcessPod& pod) const { return pod.dir + "/sandbox"; }

  CriOptions options_;
  GrpcClient& client_;
  Engine engine_;
  std::vector<std::string> missing_;
  std::unique_ptr<process::PodNetwork> network_;  // the bridge alone; null where none can be made
  std::unique_ptr<process::ServiceProxy> services_;  // with it
  std::vector<node::ServiceRoute> routes_;
  bool pods_device_known_ = false;
  std::map<std::string, Sandbox> sandboxes_;       // by pod uid
  std::map<std::string, int> attempts_;            // to make a sandbox, by pod uid
  std::map<node::ContainerRef, std::string> ids_;  // of the newest attempts
  std::string last_problem_;                       // of the engine; logged once
};

}  // namespace swell::cri
