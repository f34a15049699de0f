// FleetServer: the ports where an API server reaches the nodes of `swell agent` for logs and
// commands.
//
//   I/O thread   sockets and TLS of these ports
//
// - Threads: the core thread.
// - Ownership: core, clock and the fleet that is served outlive it.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "kube/edge/kubelet/kubelet_server.h"
#include "kube/net/reactor/reactor.h"
#include "kube/node/node_fleet.h"

namespace swell::ops {

class FleetServer {
 public:
  // Every node has a port of its own, but not in a large fleet for load tests.
  static constexpr size_t kNodesMax = 200;

  // Binds a port at the address of each node and writes it there. `client_ca`: the authority of the
  // certificate that the API server shows. `api` checks bearer tokens. Null for a large fleet.
  static Result<std::unique_ptr<FleetServer>> Listen(Executor& core,
                                                     const Clock& clock,
                                                     std::vector<node::NodeConfig>& nodes,
                                                     const std::string& client_ca,
                                                     std::shared_ptr<api::RestHandler> api);
  ~FleetServer() { Stop(); }

  // Answers from now on. Before that, the ports answer 503.
  void Serve(node::NodeFleet& fleet);
  void Stop();

 private:
  FleetServer() = default;

  net::Reactor io_;
  std::unique_ptr<edge::KubeletServer> kubelets_;
  std::thread io_thread_;
};

}  // namespace swell::ops
