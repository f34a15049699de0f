// LogPump: what a container prints becomes a log file in CRI's format, one line per line:
//
//   2026-01-01T00:00:00.000000000Z stdout F the line
//
// F ends a line. P is a piece of a longer one: 16 KiB of it, what a program wrote last without a
// newline, or a progress bar. A bar writes over its own line, which may never end: what it has
// written is a piece after a second. A file that has grown past its bound is renamed to NAME.1 (the
// older NAME.1 to NAME.2, …) and a new one begun.
//
// - Threads: none; lives in a shim.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace swell::process {

class LogPump {
 public:
  LogPump(std::string path, int64_t bytes_max, int files_max);
  ~LogPump();

  // Bytes of a stream ("stdout", "stderr") as they came, whole lines or not.
  void Feed(std::string_view stream, std::string_view bytes, WallTime now);
  // The stream has ended. What is left of its last line has no newline, in the log either.
  void End(std::string_view stream, WallTime now);
  // Gives the lines to the kernel.
  void Flush();
  // Makes pieces of progress bars that were begun a second ago. Answers after how long the next one
  // is due, if there is one.
  std::optional<Duration> TakeBars(WallTime now);

 private:
  void Line(std::string_view stream, std::string_view text, bool full, WallTime now);
  void Rotate();
  // The line that a stream has begun.
  struct Begun {
    std::string text;
    WallTime since;
  };
  Begun& BegunOf(std::string_view stream) { return stream == "stderr" ? err_ : out_; }

  std::string path_;
  int64_t bytes_max_;
  int files_max_;
  int fd_ = -1;
  int64_t size_ = 0;
  std::string pending_;
  Begun out_, err_;
};

// RFC 3339 with nanoseconds, all nine digits.
std::string FormatNanoTime(WallTime time);

}  // namespace swell::process
