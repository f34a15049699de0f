// Slurm's forms of values: time limits, amounts of memory, GPUs, arrays, lists of nodes.
// - Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace swell::cli::slurm {

// "90" minutes, "MM:SS", "HH:MM:SS", "D-HH", "D-HH:MM", "D-HH:MM:SS" in seconds; 0 for UNLIMITED.
// Misuse naming `flag`, as from all of these.
Result<int64_t> ParseTimeLimit(std::string_view flag, std::string_view text);
// "4G", "512" (MB), "1T" in MiB.
Result<int64_t> ParseMemoryMib(std::string_view flag, std::string_view text);
Result<int64_t> ParseCount(std::string_view flag, std::string_view text, int64_t least);

// "4", "a100:4"; of --gres: "gpu", "gpu:4", "gpu:a100:4".
struct GpuRequest {
  int64_t count = 0;
  std::string type;  // empty: any
};
Result<GpuRequest> ParseGpuRequest(std::string_view flag, std::string_view text);
Result<GpuRequest> ParseGres(std::string_view text);

// "USR1", "B:USR1@60".
struct SignalRequest {
  std::string name;  // "USR1", without SIG
  int64_t seconds_before = 60;
  bool shell_only = false;
};
Result<SignalRequest> ParseSignal(std::string_view text);
// "USR1" of "SIGUSR1", "usr1", "10"; empty: no signal has that name.
std::string SignalName(std::string_view text);

// "now+2hours", "2026-12-24T18:00:00", "18:30"; times of day are those of UTC.
// "now", "now+2hours", "now-1day", "today", "midnight", "noon", "tomorrow" (of UTC); null: it is
// none of them.
std::optional<WallTime> ParseWord(std::string_view text, WallTime now);
Result<WallTime> ParseBegin(std::string_view flag, std::string_view text, WallTime now);

// "1:05", "2:00:05", "1-00:00:00": as squeue has them.
std::string TimeText(Duration span);
// "00:01:05", "1-00:00:00": as sacct and scontrol have them.
std::string LongTimeText(Duration span);
// "2026-11-25T22:31:04", without a zone, as Slurm prints times; "Unknown".
std::string WhenText(const std::optional<WallTime>& time);

// Words between commas; commas between brackets do not separate.
std::vector<std::string> CommaList(std::string_view text);
// Words between commas that a job has one of; empty: any.
struct NameFilter {
  std::string text;

  bool Takes(const std::string& word) const;
  bool TakesOneOf(const std::string& list) const;
};
// "node[1-3,7],head" as the names it stands for, at most kNamesMax.
inline constexpr size_t kNamesMax = 10000;
Result<std::vector<std::string>> ExpandNames(std::string_view flag, std::string_view text);

// "1-3,7"; numbers have `width` digits at least.
std::string RangesText(const std::set<int64_t>& numbers, size_t width = 0);
// The same the other way: "node-[1-3],other" of names that need no order.
std::string CompressNames(std::vector<std::string> names);

}  // namespace swell::cli::slurm
