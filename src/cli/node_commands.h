// Commands and prints about the health of nodes.
// - Threads: the thread of main().
#pragma once

#include "cli/command.h"
#include "cli/session.h"

namespace swell::cli {

Command NodeCommandSpec();
// `swell health NODE`: conditions, GPUs, failures there and their score.
Result<int> PrintNodeHealth(Session& session, Api& api, const json::Value& node);

}  // namespace swell::cli
