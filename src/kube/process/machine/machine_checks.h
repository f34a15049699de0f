// DiskCheck, MemoryCheck, ClockCheck: the checks that every machine has.
// - Threads: as MachineCheck.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "kube/process/machine/machine_check.h"

namespace swell::process {

// Whether the directory's file system can be written and has room.
class DiskCheck final : public MachineCheck {
 public:
  struct Room {
    bool read_only = false;
    uint64_t bytes = 0, bytes_free = 0;  // free: for others than root
    uint64_t files = 0, files_free = 0;  // 0 files: the file system does not count them
  };
  explicit DiskCheck(std::string dir) : dir_(std::move(dir)) {}
  node::HealthReport Run() override;
  // What is wrong with that much room; empty: nothing.
  static std::optional<node::HealthReport> FaultOf(const Room& room, const std::string& dir);

 private:
  std::string dir_;
};

// Whether the machine has memory left, and does not spend its time looking for some.
class MemoryCheck final : public MachineCheck {
 public:
  explicit MemoryCheck(std::string proc = "/proc") : proc_(std::move(proc)) {}
  node::HealthReport Run() override;

 private:
  std::string proc_;
};

// Whether the clock was set lately: certificates, tokens and file times then contradict each other.
class ClockCheck final : public MachineCheck {
 public:
  static constexpr Duration kStep = std::chrono::seconds(10);
  static constexpr Duration kTold = std::chrono::minutes(5);
  struct Times {
    WallTime wall;
    SteadyTime boot;  // runs on while the machine sleeps
  };
  explicit ClockCheck(std::function<Times()> read = ReadTimes) : read_(std::move(read)) {}
  node::HealthReport Run() override;
  static Times ReadTimes();

 private:
  std::function<Times()> read_;
  std::optional<Times> before_;
  std::optional<SteadyTime> stepped_;
  std::string message_;
};

}  // namespace swell::process
