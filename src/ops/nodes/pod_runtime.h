// PodRuntime: the runtime that --runtime selects, with the capabilities that the wiring depends on.
// - Threads: the core thread.
// - Ownership: executor and clock outlive it; node agents are destroyed before it.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/executor.h"
#include "cli/flags.h"
#include "kube/net/reactor/reactor.h"
#include "kube/node/network/names.h"
#include "kube/node/network/network_watch.h"
#include "kube/node/runtime/runtime.h"
#include "kube/process/process_runtime.h"

namespace swell::ops {

// The value of --runtime: "process", "simulated" or "cri=SOCKET".
struct RuntimeKind {
  bool simulated = false;
  std::string engine_socket;  // of a container engine; empty: pods are processes, or simulated
  bool processes() const { return !simulated && engine_socket.empty(); }
};
Result<RuntimeKind> ParseRuntimeKind(const std::string& text);
void AddRuntimeFlag(cli::Flags& flags, std::string& to);

class PodRuntime {
 public:
  // `kind`: the value of --runtime. `options` are for processes; an engine uses those that fit. It
  // forks to find out what is permitted, so call it before any thread is started.
  static Result<std::unique_ptr<PodRuntime>> Make(const std::string& kind,
                                                  net::Reactor& core,
                                                  Clock& clock,
                                                  process::ProcessOptions options);

  node::Runtime& runtime() { return *runtime_; }
  // Pods have files: logs, volumes.
  bool has_files() const { return hosted_ != nullptr; }
  // Pods use the network of this machine, its ports included.
  bool host_network() const { return hosted_ != nullptr && gateway_.empty(); }
  // The address of this machine in the network of the pods; empty if they have no network of their
  // own.
  const std::string& gateway() const { return gateway_; }
  // Resolves names of services for pods; null if nothing runs in the pods.
  // `machine`: where ports of this machine are served; `routed` hears which are not.
  std::unique_ptr<node::ServiceNames> MakeNames(std::shared_ptr<api::RestHandler> server,
                                                const api::UserInfo& user,
                                                const node::MachineAddresses& machine = {},
                                                node::OnRouted routed = {});
  // Has NetworkPolicies enforced; null if nothing runs in the pods. `nodes`: as NetworkWatch has
  // it.
  std::unique_ptr<node::NetworkWatch> MakeNetworkWatch(
      Clock& clock,
      std::shared_ptr<api::RestHandler> server,
      const api::UserInfo& user,
      std::set<std::string, std::less<>> nodes = {});
  // Ends all pods and removes what they left.
  void Shutdown(std::function<void()> done);

 private:
  explicit PodRuntime(Executor& core) : core_(core) {}

  Executor& core_;
  std::unique_ptr<node::Runtime> runtime_;
  process::HostedRuntime* hosted_ = nullptr;  // runtime_, unless it is simulated
  std::string gateway_;
};

}  // namespace swell::ops
