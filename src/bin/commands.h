// The commands that wire the program's parts together.
// - Threads: values; a command runs on the main thread.
#pragma once

#include "cli/command.h"

namespace swell {

cli::Command UpCommand();          // an embedded cluster
cli::Command AgentCommand();       // nodes of a Kubernetes cluster
cli::Command ControllerCommand();  // scheduler and job controllers of one

}  // namespace swell
