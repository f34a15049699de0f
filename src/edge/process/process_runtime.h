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
// Thread-safety: core executor only, as every agent::Runtime. `core` outlives the runtime.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "agent/runtime.h"
#include "base/executor.h"
#include "edge/process/process_host.h"

namespace swell::edge {

class ProcessRuntime final : public agent::Runtime {
 public:
  // Blocking: finds out what is permitted, reads what earlier runs left, makes the network.
  static Result<std::unique_ptr<ProcessRuntime>> Create(Executor& core, ProcessOptions options);
  ~ProcessRuntime() override;

  // Where pods reach the host: the API server must listen there (or everywhere).
  const std::string& gateway() const { return gateway_; }
  const HostSupport& support() const { return support_; }
  // The end of the cluster: every pod is killed, everything of it removed.
  void Shutdown(std::function<void()> done);

  agent::RuntimeInfo Info() const override;
  void List(const std::string& node,
            std::function<void(Result<std::vector<agent::FoundPod>>)> done) override;
  void Adopt(const agent::FoundPod& pod, std::weak_ptr<agent::PodObserver> observer) override;
  void CreateSandbox(const agent::SandboxSpec& spec,
                     std::weak_ptr<agent::PodObserver> observer,
                     std::function<void(Result<agent::SandboxInfo>)> done) override;
  void StartContainer(const agent::ContainerSpec& spec,
                      std::function<void(Result<agent::ContainerStarted>)> done) override;
  void Signal(const agent::ContainerRef& container, int signal) override;
  void Stop(const std::string& pod_uid) override;
  void Remove(const std::string& pod_uid, std::function<void(const Status&)> done) override;
  void Exec(const agent::ContainerRef& container,
            const agent::ExecSpec& spec,
            std::function<void(Result<agent::ExecResult>)> done) override;
  void OpenStdio(const agent::ContainerRef& container,
                 const agent::StdioSpec& spec,
                 agent::StdioCallback done) override;
  void Dial(const std::string& pod_uid,
            uint16_t port,
            std::function<void(Result<api::DuplexPtr>)> done) override;
  void Probe(const std::string& pod_uid,
             const agent::ProbeSpec& spec,
             std::function<void(agent::ProbeResult)> done) override;
  void Usage(const std::string& node,
             std::function<void(std::vector<agent::ContainerUsage>)> done) override;
  void UpdateHosts(const std::string& pod_uid,
                   const std::vector<agent::HostsEntry>& hosts) override;
  // Who makes pods reach services at cluster IPs; null where pods have no networks of their own.
  agent::RouteServices Router();
  void UpdateVolume(const std::string& pod_uid, const agent::VolumeSpec& volume) override;
  void WriteNotice(const std::string& pod_uid, const std::string& notice_json) override;
  std::unique_ptr<agent::LogStream> ReadLog(const agent::ContainerRef& container,
                                            const agent::LogOptions& options,
                                            agent::LogCallbacks callbacks) override;

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
};

}  // namespace swell::edge
