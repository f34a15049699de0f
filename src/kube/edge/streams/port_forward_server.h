// PortForwardServer: the kubelet's half of port-forward: connections to a pod's ports, each a pair
// of streams (data and error).
//
//   SPDY (portforward.k8s.io)             pairs as the client opens them, joined by their requestid
//   WebSocket SPDY/3.1+portforward.k8s.io the same inside a WebSocket
//   WebSocket v4.channel.k8s.io           one pair per port of the query, from the beginning
//
// - Threads: core executor only.
// - Ownership: a session keeps itself alive until its client is gone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/executor.h"
#include "kube/api/rest/rest.h"
#include "kube/edge/streams/upgrade.h"

namespace swell::edge {

const std::vector<std::string>& PortForwardSpdyProtocols();
const std::vector<std::string>& PortForwardWebSocketProtocols();

struct PortForwardRequest {
  std::string pod;              // "name, uid x", for errors
  std::vector<uint16_t> ports;  // of the query: WebSocket channels have no other way to say them
  std::function<void(uint16_t port, std::function<void(Result<api::DuplexPtr>)>)> dial;
};

void ServePortForward(Executor& executor,
                      const Agreement& agreement,
                      api::DuplexPtr wire,
                      PortForwardRequest request);

}  // namespace swell::edge
