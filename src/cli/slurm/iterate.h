// Iterate: the flag -i of commands that print a table: again and again, every so many seconds.
// - Threads: blocks on the Api's loop.
#pragma once

#include <cstdint>
#include <functional>

#include "cli/flags.h"
#include "cli/session.h"

namespace swell::cli::slurm {

class Iterate {
 public:
  void Declare(Flags& flags);
  // Calls `print` once. With the flag: until it fails, the user interrupts it, or nobody reads what
  // it prints; the time is printed before each table.
  Result<int> Run(Session& session, const std::function<Status()>& print) const;

 private:
  static constexpr int64_t kOnce = -1;
  int64_t seconds_ = kOnce;
};

}  // namespace swell::cli::slurm
