// StopWait: how long somebody waits for the end of a cluster. A minute suffices, unless the cluster
// writes what processes left in memory: then as long as that gets on.
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

  // Looks again, every second or so. What there is to say to who waits; empty: nothing new.
  std::string Look();
  // Nothing has moved for a minute.
  bool over() const { return clock_.Steady() >= until_; }

 private:
  Clock& clock_;
  std::string data_dir_;
  SteadyTime until_;
  std::optional<SteadyTime> told_;
  std::optional<process::SavingStates> saving_;
};

}  // namespace swell::ops
