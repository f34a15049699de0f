// CommandServer: the kubelet's half of exec and attach: a command's standard streams over SPDY
// (remotecommand v1 to v4) or WebSocket (channel.k8s.io, v4, v5 and their base64 forms).
// - Threads: core executor only.
// - Ownership: a session keeps itself alive until the command or its client is gone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/executor.h"
#include "kube/api/rest/rest.h"
#include "kube/edge/streams/upgrade.h"
#include "kube/node/runtime/runtime.h"

namespace swell::edge {

// What both forms speak, best first.
const std::vector<std::string>& CommandSpdyProtocols();
const std::vector<std::string>& CommandWebSocketProtocols();

struct CommandRequest {
  node::StdioSpec spec;
  // When the client's input ends, an attached container's does, too; else the client is let go.
  bool input_ends_with_client = true;
  std::function<void(node::StdioCallback)> open;
};

void ServeCommand(Executor& executor,
                  const Agreement& agreement,
                  api::DuplexPtr wire,
                  CommandRequest request);

}  // namespace swell::edge
