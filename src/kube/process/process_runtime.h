// ProcessRuntime: runs pods as real processes of this machine.
//
// Each container has a small shim process (pod_shim.h) that outlives swell: destroying the runtime
// leaves pods running, and the next runtime over the same data directory takes them over. With
// root, containers get namespaces, an overlay over the host's root, control groups and a network
// per pod; without, as much of that as the machine permits (Info().limits says what is missing).
//
// Its I/O lives on a thread of its own, so that making directories and starting processes never
// delays the core.
//
// - Threads: core executor only, as every node::Runtime. `core` outlives the runtime.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "base/executor.h"
#include "kube/images/image_service.h"
#include "kube/node/runtime.h"
#include "kube/process/process_host.h"

namespace swell::edge {

// In the data directory: what this machine does not permit, as a list of "WHAT: WHY".
inline constexpr std::string_view kLimitsFile = "runtime-limits.json";

class ProcessRuntime final : public node::Runtime {
 public:
  // Blocking: finds out what is permitted, reads what earlier runs left, makes the network.
  static Result<std::unique_ptr<ProcessRuntime>> Create(Executor& core, ProcessOptions options);
  ~ProcessRuntime() override;

  // Where pods reach the host: the API server must listen there (or everywhere).
  const std::string& gateway() const { return gateway_; }
  const HostSupport& support() const { return support_; }
  // The end of the cluster: every pod is killed and removed, but for the logs of those that had
  // ended.
  void Shutdown(std::function<void()> done);

  node::RuntimeInfo Info() const override;
  void List(const std::string& node,
            std::function<void(Result<std::vector<node::FoundPod>>)> done) override;
  void Adopt(const node::FoundPod& pod, std::weak_ptr<node::PodObserver> observer) override;
  void CreateSandbox(const node::SandboxSpec& spec,
                     std::weak_ptr<node::PodObserver> observer,
                     std::function<void(Result<node::SandboxInfo>)> done) override;
  void EnsureImage(const node::ImageRequest& request,
                   std::function<void()> on_pull,
                   std::function<void(Result<node::ImageReady>)> done) override;
  void StartContainer(const node::ContainerSpec& spec,
                      std::function<void(Result<node::ContainerStarted>)> done) override;
  void Signal(const node::ContainerRef& container, int signal) override;
  void Resize(const node::ContainerRef& container,
              const node::CpuAndMemory& amounts,
              std::function<void(const Status&)> done) override;
  void Stop(const std::string& pod_uid) override;
  void Remove(const std::string& pod_uid, std::function<void(const Status&)> done) override;
  void Exec(const node::ContainerRef& container,
            const node::ExecSpec& spec,
            std::function<void(Result<node::ExecResult>)> done) override;
  void OpenStdio(const node::ContainerRef& container,
                 const node::StdioSpec& spec,
                 node::StdioCallback done) override;
  void Dial(const std::string& pod_uid,
            uint16_t port,
            std::function<void(Result<api::DuplexPtr>)> done) override;
  void Probe(const std::string& pod_uid,
             const node::ProbeSpec& spec,
             std::function<void(node::ProbeResult)> done) override;
  void Usage(const std::string& node,
             std::function<void(std::vector<node::ContainerUsage>)> done) override;
  void MeasureDisk(const std::string& pod_uid, std::function<void(node::DiskUse)> done) override;
  void UpdateHosts(const std::string& pod_uid, const std::vector<node::HostsEntry>& hosts) override;
  // Routes cluster IPs of services; null where pods have no networks of their own.
  node::RouteServices Router();
  // Keeps NetworkPolicies; null where pods have no networks of their own.
  node::EnforceRules Enforcer();
  void UpdateVolume(const std::string& pod_uid, const node::VolumeSpec& volume) override;
  void WriteNotice(const std::string& pod_uid, const std::string& notice_json) override;
  std::unique_ptr<node::LogStream> ReadLog(const node::ContainerRef& container,
                                           const node::LogOptions& options,
                                           node::LogCallbacks callbacks) override;
  void KeptJobs(std::function<void(std::vector<std::string>)> done) override;
  void ForgetJob(const std::string& job_uid) override;

 private:
  struct Core;
  class LogJob;
  class LogHandle;
  class Stdio;

  explicit ProcessRuntime(Executor& core);
  void OnIo(std::function<void(ProcessHost&)> fn);

  Executor& core_;
  std::shared_ptr<Core> shared_;
  HostSupport support_;
  std::string gateway_;
  std::unique_ptr<net::Reactor> reactor_;
  std::shared_ptr<std::unique_ptr<ProcessHost>> host_;  // touched on the I/O thread only
  std::thread thread_;
  std::unique_ptr<ImageCatalogue> catalogue_;
  std::unique_ptr<images::ImageService> images_;  // null where images cannot be run
};

}  // namespace swell::edge
