// KubeletServer: the HTTPS endpoints of this process's nodes, for a real control plane:
// kube-apiserver connects to a node's InternalIP and status.daemonEndpoints.kubeletEndpoint.Port.
//
//   KubeletServer server(core, io, clock, {.tls = …, .api = transport});
//   auto port = server.Listen("node-1", "0.0.0.0:0");     // → NodeConfig::kubelet_port
//   server.Serve("node-1", MakeKubeletEndpoints(agent));  // once there is an agent
//
// One port per node, as kubelets have; /containerLogs, /exec, /attach, /portForward, /pods and
// /healthz answer on each. A caller with a client certificate of tls.client_ca_pem is let in, as
// the API server is with --kubelet-client-certificate. Bearer tokens are checked by `api`
// (TokenReview, then SubjectAccessReview of nodes/metrics, nodes/stats or nodes/proxy). Other
// callers are refused, unless `anonymous`.
//
// - Threads: the core thread; Listen before `io` runs, or while nobody runs it.
// - Ownership: core, io, clock and the handlers outlive the server. Destroy it where Listen may be
//   called.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/executor.h"
#include "base/fair_places.h"
#include "kube/api/rest/rest.h"
#include "kube/net/tls/tls.h"
#include "kube/node/node_agent.h"

namespace swell::net {
class Reactor;
}

namespace swell::edge {

struct KubeletServerConfig {
  net::TlsServerConfig tls;
  bool anonymous = false;
  std::shared_ptr<api::RestHandler> api;  // null: bearer tokens are refused
};

class KubeletServer {
 public:
  KubeletServer(Executor& core, net::Reactor& io, const Clock& clock, KubeletServerConfig config);
  ~KubeletServer();

  // Binds the node's endpoint ("10.0.0.5:0") and returns its port.
  Result<uint16_t> Listen(const std::string& node, const std::string& address);
  // Answers for the node from now on; before, its port answers 503.
  void Serve(const std::string& node, std::shared_ptr<api::RestHandler> endpoints);

 private:
  class Node;

  Executor& core_;
  net::Reactor& io_;
  const Clock& clock_;
  KubeletServerConfig config_;
  std::map<std::string, std::unique_ptr<Node>> nodes_;
};

// What users may hold of the connections into pods. All nodes of a process share the descriptors.
struct NodePlaces {
  std::shared_ptr<FairPlaces> forwarded;  // connections to ports
  std::shared_ptr<FairPlaces> commands;   // exec and attach
};

// A node's whole kubelet API: node::KubeletHandler's answers, and exec, attach and portForward
// over SPDY and WebSocket. The agent outlives it.
std::shared_ptr<api::RestHandler> MakeKubeletEndpoints(node::NodeAgent& agent, NodePlaces places);
// Places for a part of the descriptors that this process may have open.
NodePlaces MakeNodePlaces();

}  // namespace swell::edge
