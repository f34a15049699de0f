// RunInteractive: a command (or a container attached to) that talks with the terminal until it
// ends.
// - Threads: the session's thread; blocks on its loop.
#pragma once

#include <string>
#include <vector>

#include "cli/session.h"
#include "kube/edge/streams/command_client.h"

namespace swell::cli {

struct InteractiveCommand {
  edge::CommandOptions command;
  bool quiet = false;
  // Takes what the command writes to standard output, up to kOutputKeptMax; null: it is shown.
  std::string* output = nullptr;
};
inline constexpr size_t kOutputKeptMax = 4 << 20;

// The command's exit code.
Result<int> RunInteractive(Session& session, InteractiveCommand interactive);

// Refuses `what` ("exec") of a pod that waits for a node, that has no running container, or that
// has ended. The last refusal has kubectl's words.
Status CheckHasContainers(const json::Value& pod, std::string_view what);

}  // namespace swell::cli
