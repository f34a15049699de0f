// KubeletHandler: a node's kubelet endpoints as a RestHandler, for the API server's pod log
// subresource and for people who curl a node.
//
//   /healthz   /pods   /stats/summary   /metrics/resource
//   /containerLogs/NAMESPACE/POD/CONTAINER?follow&tailLines&sinceSeconds&sinceTime&timestamps
//                                         &previous&limitBytes
// exec, attach and portForward need a connection of their own: edge::KubeletEndpoints has them.
//
// - Threads: core executor only. The agent outlives the handler's calls.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kube/api/rest/rest.h"
#include "kube/node/node_agent.h"

namespace swell::node {

class KubeletHandler final : public api::RestHandler {
 public:
  explicit KubeletHandler(NodeAgent& agent) : agent_(agent) {}

  [[nodiscard]] std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                                      std::shared_ptr<api::RestSink> sink) override;

  // The container's attempt under way, by the pod's "namespace/name"; nullopt when none runs.
  std::optional<ContainerRef> FindRunning(const std::string& key,
                                          const std::string& container) const;

 private:
  std::unique_ptr<api::RestCall> Logs(const std::vector<std::string_view>& path,
                                      const std::string& query,
                                      const std::shared_ptr<api::RestSink>& sink);
  std::unique_ptr<api::RestCall> Usage(bool summary, std::shared_ptr<api::RestSink> sink);
  Result<ContainerRef> FindLog(const std::string& key,
                               const std::string& container,
                               bool previous) const;

  NodeAgent& agent_;
};

// The answer that carries a Status, as Kubernetes clients read it.
api::RestResponse StatusResponse(int http_status, const Status& status);

}  // namespace swell::node
