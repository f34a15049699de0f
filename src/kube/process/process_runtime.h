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

#include "base/executor.h"
#include "kube/images/image_service.h"
#include "kube/node/runtime/runtime.h"
#include "kube/process/hosted_runtime.h"
#include "kube/process/process_host.h"

namespace swell::process {

class ProcessRuntime final : public HostedRuntime {
 public:
  // Blocking: finds out what is permitted, reads what earlier runs left, makes the network.
  static Result<std::unique_ptr<ProcessRuntime>> Create(Executor& core, ProcessOptions options);
  ~ProcessRuntime() override;

  // Where pods reach the host: the API server must listen there (or everywhere).
  std::string gateway() const override { return support_.network ? gateway_ : ""; }
  const HostSupport& support() const { return support_; }
  node::RuntimeInfo Info() const override;
  void EnsureImage(const node::ImageRequest& request,
                   std::function<void()> on_pull,
                   std::function<void(Result<node::ImageReady>)> done) override;
  void OpenStdio(const node::ContainerRef& container,
                 const node::StdioSpec& spec,
                 node::StdioCallback done) override;
  node::RouteServices Router() override;
  node::EnforceRules Enforcer() override;

 private:
  class Stdio;

  explicit ProcessRuntime(Executor& core);
  void OnProcesses(std::function<void(ProcessHost&)> fn);

  ProcessHost* processes_ = nullptr;  // used on the I/O thread only, as long as the host is there
  HostSupport support_;
  std::string gateway_;
  std::unique_ptr<ImageCatalogue> catalogue_;
  std::unique_ptr<images::ImageService> images_;  // null where images cannot be run
};

}  // namespace swell::process
