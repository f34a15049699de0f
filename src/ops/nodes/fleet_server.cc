#include "ops/nodes/fleet_server.h"

#include <utility>

#include "base/host_port.h"
#include "base/strings.h"
#include "ops/nodes/kubelet_certificate.h"

namespace swell::ops {

Result<std::unique_ptr<FleetServer>> FleetServer::Listen(Executor& core,
                                                         const Clock& clock,
                                                         std::vector<node::NodeConfig>& nodes,
                                                         const std::string& client_ca,
                                                         std::shared_ptr<api::RestHandler> api) {
  if (nodes.size() > kNodesMax) return std::unique_ptr<FleetServer>();
  SWELL_ASSIGN_OR_RETURN(const net::CertificatePair cert, MakeKubeletCertificate(nodes, clock));
  edge::KubeletServerConfig config;
  config.tls = {cert.cert_pem, cert.key_pem, client_ca};
  config.api = std::move(api);
  std::unique_ptr<FleetServer> made(new FleetServer());
  made->kubelets_ =
      std::make_unique<edge::KubeletServer>(core, made->io_, clock, std::move(config));
  for (node::NodeConfig& node : nodes) {
    SWELL_ASSIGN_OR_RETURN(
        node.kubelet_port,
        made->kubelets_->Listen(node.name, StrCat(Bracketed(node.internal_ip), ":0")));
  }
  return made;
}

void FleetServer::Serve(node::NodeFleet& fleet) {
  const auto places = edge::MakeNodePlaces();
  for (node::NodeAgent* node : fleet.nodes()) {
    kubelets_->Serve(node->name(), edge::MakeKubeletEndpoints(*node, places));
  }
  io_thread_ = std::thread([this] { io_.Run(); });
}

void FleetServer::Stop() {
  if (io_thread_.joinable()) {
    io_.Stop();
    io_thread_.join();
  }
  kubelets_.reset();
}

}  // namespace swell::ops
