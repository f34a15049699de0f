// LogMetrics: reads observations from a training log: seconds per step, by a regular expression
// whose first group is the number (RE2 syntax; matching takes time linear in the text). The default
// reads
//
//   Epoch: [17][  50/1563]  Time  0.258 ( 0.385)  Data  0.155 ( 0.170)  Loss ...
//
// Lines begin with a time, as the API prints them on request. `swell.launch: 2 nodes train` gives
// the size of the group from there on. Observations of another size than requested are left out.
//
// - Threads: immutable after Compile. Any bytes are accepted: lines that are not
//   observations are skipped and never an error.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace swell::elastic {

// Where the next read continues.
struct LogPosition {
  int64_t seen_unix_ns = 0;  // time of the last line that was read
  int64_t nodes = 0;         // the group's size as last logged; 0: not logged yet
};

class LogMetrics {
 public:
  // An empty pattern means the default. kInvalid says what is wrong with it.
  static Result<LogMetrics> Compile(std::string_view pattern);
  LogMetrics(LogMetrics&&) noexcept;
  LogMetrics& operator=(LogMetrics&&) noexcept;
  ~LogMetrics();

  // Observations after `position` by a group of `nodes` members, in order; moves the position. A
  // log that never says its size is taken to be of the right one.
  std::vector<double> Read(std::string_view log, int64_t nodes, LogPosition& position) const;

 private:
  struct Rep;
  explicit LogMetrics(std::unique_ptr<Rep> rep);
  std::unique_ptr<Rep> rep_;
};

// "2026-01-31T10:00:00.123456789Z", any offset; -1 for text that is not a time.
int64_t ParseStamp(std::string_view text);
// Members of the group whose training begins with this line, which swell.launch wrote; 0: another
// line.
int64_t GroupThatBegins(std::string_view line);

}  // namespace swell::elastic
