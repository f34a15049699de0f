// StopWait: how long `swell down` waits for the end of a cluster. It waits for a minute. While the
// cluster writes what processes left in memory, it waits as long as that makes progress.
// - Threads: a plain value over the file system.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "kube/process/saving_states.h"

namespace swell::ops {

class StopWait {
 public:
  StopWait(Clock& clock, std::string data_dir);

  // Is called every second or so. Returns what to tell the user; empty: nothing new.
  std::string Look();
  // There was no progress for a minute.
  bool over() const { return clock_.Steady() >= until_; }

 private:
  Clock& clock_;
  std::string data_dir_;
  SteadyTime until_;
  std::optional<SteadyTime> told_;
  std::optional<process::SavingStates> saving_;
};

}  // namespace swell::ops
