// What `swell top` does without a subcommand.
// - Threads: a command runs on the thread of main().
#pragma once

#include <memory>

#include "cli/command.h"

namespace swell::cli {

std::unique_ptr<Action> MakeTopAction();

}  // namespace swell::cli
