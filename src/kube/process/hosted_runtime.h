// HostedRuntime: the half of a runtime that runs on the core thread, the same for all runtimes. It
// carries calls to the ContainerHost, which has a thread of its own, and carries answers and events
// back. So the core never waits for the file system or an engine.
//
// - Threads: core executor only, as every node::Runtime. `core` outlives the runtime.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/executor.h"
#include "kube/node/network/network_watch.h"
#include "kube/node/runtime/runtime.h"
#include "kube/node/runtime/service_route.h"
#include "kube/process/container_host.h"

namespace swell::process {

// In the data directory: what this machine does not permit, as a list of "WHAT: WHY".
inline constexpr std::string_view kLimitsFile = "runtime-limits.json";
// `swell status` is another process.
Status WriteLimits(const std::string& data_dir, const std::vector<std::string>& missing);

class HostedRuntime : public node::Runtime {
 public:
  ~HostedRuntime() override;

  // Where pods reach the host: the API server must listen there (or everywhere). Empty where pods
  // have no network of their own.
  virtual std::string gateway() const = 0;
  // Routes cluster IPs of services; null where pods have no networks of their own.
  virtual node::RouteServices Router();
  // Keeps NetworkPolicies; null where this runtime cannot.
  virtual node::EnforceRules Enforcer() = 0;
  // The end of the cluster: kills and removes every pod. The logs of pods that had ended stay.
  void Shutdown(std::function<void()> done);

  void List(const std::string& node,
            std::function<void(Result<std::vector<node::FoundPod>>)> done) override;
  void Adopt(const node::FoundPod& pod, std::weak_ptr<node::PodObserver> observer) override;
  void CreateSandbox(const node::SandboxSpec& spec,
                     std::weak_ptr<node::PodObserver> observer,
                     std::function<void(Result<node::SandboxInfo>)> done) override;
  void StartContainer(const node::ContainerSpec& spec,
                      std::function<void(Result<node::ContainerStarted>)> done) override;
  void Signal(const node::ContainerRef& container, int signal) override;
  void Resize(const node::ContainerRef& container,
              const node::CpuAndMemory& amounts,
              std::function<void(const Status&)> done) override;
  void Stop(const std::string& pod_uid,
            std::function<void(const Status&)> on_delay,
            std::function<void(const Status&)> done) override;
  void Remove(const std::string& pod_uid, std::function<void(const Status&)> done) override;
  void Exec(const node::ContainerRef& container,
            const node::ExecSpec& spec,
            std::function<void(Result<node::ExecResult>)> done) override;
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
  void UpdateVolume(const std::string& pod_uid, const node::VolumeSpec& volume) override;
  void WriteNotice(const std::string& pod_uid, const std::string& notice_json) override;
  std::unique_ptr<node::LogStream> ReadLog(const node::ContainerRef& container,
                                           const node::LogOptions& options,
                                           node::LogCallbacks callbacks) override;
  void KeptJobs(std::function<void(std::vector<std::string>)> done) override;
  void ForgetJob(const std::string& job_uid) override;

 protected:
  explicit HostedRuntime(Executor& core);
  // What the host reports reaches the pods' observers.
  ContainerHost::Events MakeEvents();
  // Starts the I/O thread.
  void Run(std::unique_ptr<ContainerHost> host);
  // Destroys the host on the I/O thread, and joins that. What the host uses must still exist.
  void EndHost();
  void OnHost(std::function<void(ContainerHost&)> fn);
  // Expired once the runtime ends.
  std::weak_ptr<void> alive() const;

  Executor& core_;
  std::unique_ptr<net::Reactor> reactor_;

 private:
  struct Core;
  class LogJob;
  class LogHandle;

  std::shared_ptr<Core> shared_;
  std::shared_ptr<std::unique_ptr<ContainerHost>> host_;  // touched on the I/O thread only
  std::thread thread_;
};

}  // namespace swell::process
