// The actions of swell lab.
// - Threads: each runs on the session's thread.
#pragma once

#include <memory>

#include "cli/command.h"

namespace swell::ops {

std::unique_ptr<cli::Action> MakeLabRun();
std::unique_ptr<cli::Action> MakeLabExplain();

}  // namespace swell::ops
