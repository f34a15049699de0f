// ExecIn: what `swell exec` does, as a function for front ends with other names for it.
// - Threads: one thread; blocks on the session's loop.
#pragma once

#include <string>
#include <vector>

#include "cli/session.h"

namespace swell::cli {

struct ExecIn {
  std::string ns, pod, container;  // container empty: the first
  std::vector<std::string> command;
  bool interactive = false;  // passes standard input, with a terminal if there is one
  bool quiet = false;        // says nothing of its own
};
// The command's own exit status.
Result<int> Exec(Session& session, const ExecIn& what);

}  // namespace swell::cli
