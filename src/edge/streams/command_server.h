// CommandServer: the kubelet's half of exec and attach: a command's standard streams over SPDY
// (remotecommand v1 to v4) or WebSocket (channel.k8s.io, v4, v5 and their base64 forms).
//
// Thread-safety: core executor only.
// Ownership: a session keeps itself alive until the command or its client is gone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/runtime.h"
#include "api/rest.h"
#include "base/executor.h"
#include "edge/streams/upgrade.h"

namespace swell::edge {

// What both forms speak, best first.
const std::vector<std::string>& CommandSpdyProtocols();
const std::vector<std::string>& CommandWebSocketProtocols();

struct CommandRequest {
  agent::StdioSpec spec;
  // When the client's input ends, an attached container's does, too; else the client is let go.
  bool input_ends_with_client = true;
  std::function<void(agent::StdioCallback)> open;
};

void ServeCommand(Executor& executor,
                  const Agreement& agreement,
                  api::DuplexPtr wire,
                  CommandRequest request);

}  // namespace swell::edge
