// CriRuntime: runs pods by a container engine of this machine (containerd, CRI-O), through the
// Container Runtime Interface.
//
// Pods outlive swell, as the engine runs them: the next runtime over the same data directory finds
// them by their labels. The engine makes their networks (CNI) and pulls their images, so the names
// that stand for this machine's own programs do not work here.
//
// - Threads: core executor only, as every node::Runtime. `core` outlives the runtime.
#pragma once

#include <memory>
#include <string>

#include "kube/cri/cri_host.h"
#include "kube/cri/grpc_client.h"
#include "kube/process/hosted_runtime.h"

namespace swell::cri {

class CriRuntime final : public process::HostedRuntime {
 public:
  // Blocks: asks the engine what it is, and which pods earlier runs left in it.
  static Result<std::unique_ptr<CriRuntime>> Create(net::Reactor& core, CriOptions options);
  ~CriRuntime() override;

  std::string gateway() const override { return gateway_; }
  node::EnforceRules Enforcer() override { return nullptr; }

  node::RuntimeInfo Info() const override { return info_; }
  void EnsureImage(const node::ImageRequest& request,
                   std::function<void()> on_pull,
                   std::function<void(Result<node::ImageReady>)> done) override;
  void OpenStdio(const node::ContainerRef& container,
                 const node::StdioSpec& spec,
                 node::StdioCallback done) override;

 private:
  struct Pull;

  explicit CriRuntime(net::Reactor& core) : HostedRuntime(core), core_reactor_(core) {}
  // Calls runtime.v1.ImageService; the answer comes on the core thread.
  void CallImages(std::string_view method,
                  const Message& message,
                  Duration deadline,
                  std::function<void(Result<std::string>)> done);
  void AskForImage(const std::shared_ptr<Pull>& pull);
  void PullNext(const std::shared_ptr<Pull>& pull);

  net::Reactor& core_reactor_;
  std::unique_ptr<GrpcClient> client_;
  CriHost* engine_host_ = nullptr;  // used on the I/O thread only, as long as the host is there
  node::RuntimeInfo info_;
  std::string gateway_;
};

}  // namespace swell::cri
