// Clock: the only source of time. Real in bin/, virtual in tests and simulation.
// - Threads: WallTime and SteadyTime are plain values; a Clock may be read from any thread.
#pragma once

#include <chrono>
#include <cstdint>

namespace swell {

using Duration = std::chrono::nanoseconds;

// Wall time, for timestamps that people and other machines read. Jumps with the system's clock.
struct WallTime {
  int64_t unix_ns = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 of a comparison for a pointer
  auto operator<=>(const WallTime&) const = default;
  WallTime operator+(Duration d) const { return {unix_ns + d.count()}; }
  WallTime operator-(Duration d) const { return {unix_ns - d.count()}; }
  Duration operator-(WallTime other) const { return Duration(unix_ns - other.unix_ns); }
};

// Monotonic time, for intervals and timers. Its zero means nothing.
struct SteadyTime {
  int64_t ns = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 of a comparison for a pointer
  auto operator<=>(const SteadyTime&) const = default;
  SteadyTime operator+(Duration d) const { return {ns + d.count()}; }
  Duration operator-(SteadyTime other) const { return Duration(ns - other.ns); }
};

// - Threads: implementations may be called from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual WallTime Now() const = 0;
  virtual SteadyTime Steady() const = 0;
};

// The machine's clocks.
class RealClock final : public Clock {
 public:
  WallTime Now() const override;
  SteadyTime Steady() const override;
};

}  // namespace swell
