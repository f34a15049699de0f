// Nftables: the kernel's packet rules, in nftables' own language.
// - Threads: any; a call blocks for milliseconds.
#pragma once

#include <string>

#include "base/result.h"

namespace swell::process {

// Runs the commands as one transaction in this thread's network. kUnavailable: the library or the
// kernel's part is missing, or the process has no right to it.
Status RunNftables(const std::string& commands);
// The same for commands that list something: what they print.
Result<std::string> AskNftables(const std::string& commands);

}  // namespace swell::process
