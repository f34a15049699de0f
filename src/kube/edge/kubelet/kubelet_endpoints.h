// KubeletEndpoints: a node's whole kubelet API. What needs a connection of its own is served here;
// the rest is node::KubeletHandler's.
//
//   /exec/NAMESPACE/POD/CONTAINER?command=…&input=1&output=1&error=1&tty=1    GET or POST
//   /attach/NAMESPACE/POD/CONTAINER?input=1&output=1&error=1&tty=1
//   /portForward/NAMESPACE/POD?port=…
// With user=NAME: who commands and connections are counted for.
// A pod's uid may stand between its name and what follows, as kubelets allow.
//
// - Threads: core executor only. The agent outlives the handler.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/api/rest/rest.h"
#include "kube/edge/kubelet/kubelet_server.h"
#include "kube/node/kubelet_handler.h"

namespace swell::edge {

class KubeletEndpoints final : public api::RestHandler {
 public:
  KubeletEndpoints(node::NodeAgent& agent, NodePlaces places)
      : agent_(agent), plain_(agent), places_(std::move(places)) {}

  [[nodiscard]] std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                                      std::shared_ptr<api::RestSink> sink) override;

 private:
  using Query = std::vector<std::pair<std::string, std::string>>;
  // Each answers the sink itself, or returns the refusal.
  Status Command(const api::RestRequest& request,
                 const std::vector<std::string>& path,
                 const Query& query,
                 api::RestSink& sink);
  Status PortForward(const api::RestRequest& request,
                     const std::vector<std::string>& path,
                     const Query& query,
                     api::RestSink& sink);

  node::NodeAgent& agent_;
  node::KubeletHandler plain_;
  const NodePlaces places_;
};

}  // namespace swell::edge
