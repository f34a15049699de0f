// SavingStates: how far a node is with what processes left in memory. `swell down` waits for it,
// which is another process. The file that tells it is in memory: the disk may be full.
// - Threads: pure functions over the file system.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace swell::process {

struct SavingStates {
  int64_t states = 0;  // not on disk yet
  int64_t bytes = 0;   // of those that are begun
  int64_t written = 0;
  std::string delay;         // why one is not written yet; empty: none waits
  int64_t seconds_left = 0;  // until it is given up

  bool operator==(const SavingStates&) const = default;
};

// Removes the file if no states are left.
void TellSaving(const std::string& data_dir, const SavingStates& saving);
std::optional<SavingStates> ReadSaving(const std::string& data_dir);

}  // namespace swell::process
