// The command `version` of a front end that speaks another program's language.
// - Threads: as any command.
#pragma once

#include <string>

#include "cli/command.h"

namespace swell::cli {

// Prints `line`, and `provided` unless --short is given.
Command FrontEndVersionSpec(const std::string& line, const std::string& provided);

}  // namespace swell::cli
