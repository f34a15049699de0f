// UsageMeter: what containers use of this machine, from their control groups where those report
// it, else from /proc: the first process of a container and all that descend from it.
//
//   meter.Measure({{ref, state.init_pid, group, started}}, clock.Now(), clock.Steady());
//
// A rate needs two moments. The meter keeps what it saw some seconds ago; until then a container is
// measured from its start.
//
// - Threads: one thread.
// - Invariants: keeps at most kMomentsMax moments per container, and nothing of those that were not
//   among the last ones measured.
#pragma once

#include <sys/types.h>

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kube/node/runtime/runtime.h"

namespace swell::process {

class UsageMeter {
 public:
  // At least so long are rates taken over, once a container has run that long.
  static constexpr Duration kWindow = std::chrono::seconds(10);
  static constexpr size_t kMomentsMax = 4;

  struct Subject {
    node::ContainerRef ref;
    pid_t first_process = 0;
    std::string group;  // its control group of version 2; empty: it has none
    WallTime started;
  };

  explicit UsageMeter(std::string proc = "/proc");

  // In the order of `subjects`, without those that are gone.
  std::vector<node::ContainerUsage> Measure(const std::vector<Subject>& subjects,
                                            WallTime now,
                                            SteadyTime steady);

 private:
  struct Reading {
    Duration cpu{0};
    int64_t memory_bytes = 0;
  };
  struct Moment {
    SteadyTime at;
    Duration cpu{0};
  };
  struct Process;
  using Processes = std::map<pid_t, Process>;

  static std::optional<Reading> ReadGroup(const std::string& group);
  Processes ReadProcesses() const;
  std::optional<Reading> ReadTree(const Processes& processes, pid_t first) const;

  std::string proc_;
  int64_t tick_ns_;
  int64_t page_bytes_;
  std::map<node::ContainerRef, std::deque<Moment>> moments_;
};

}  // namespace swell::process
