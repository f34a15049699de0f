// LogProgress: reads from a training log how far the training is, for scripts that report nothing
// themselves. A pattern (RE2 syntax; matching takes time linear in the text) names what it finds by
// its groups:
//
//   step (?P<step>\d+)/(?P<total>\d+).*loss[ =](?P<loss>\S+)
//
// Groups: step, total, epoch, epochs, loss. One of step and epoch must be there; without a step,
// epochs are what is counted. The pattern "auto" finds common forms: `step 12/100`, `iteration 12`,
// tqdm's `12/100 [00:03<00:21`, `Epoch 3/10`, `loss=0.25`.
//
// Lines begin with a time, as the API prints them on request. If a progress bar has written over a
// line, its last writing counts. The line of a bar that is being drawn has no end yet: of it the
// last writing counts that is whole, at the time of the reading.
//
// The speed is that of the present group: where swell.launch says that a group begins, it is
// measured anew.
//
// - Threads: immutable after Compile. Any bytes are accepted: text that is not a number is skipped.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/result.h"

namespace swell::elastic {

// What was read of one process's log so far.
struct LoggedProgress {
  int64_t step = 0, total = 0, epoch = 0, epochs = 0;
  std::optional<double> loss;               // may be NaN or infinite
  std::optional<int64_t> not_finite_since;  // the step at which it became so, while it is
  bool counts_steps = false;                // a line had a step: epochs alone do not count any more
  int64_t changed_unix_ns = 0;              // time of the last line with a number; 0: not yet
  int64_t seen_unix_ns = 0;                 // time of the last line that was read

  // Steps per second over the last readings; 0: not known.
  double Speed() const;

  static constexpr size_t kReadingsMax = 12;
  std::deque<std::pair<int64_t, int64_t>> readings;  // time and step
};

class LogProgress {
 public:
  // kInvalid says what is wrong with the pattern.
  static Result<LogProgress> Compile(std::string_view pattern);
  LogProgress(LogProgress&&) noexcept;
  LogProgress& operator=(LogProgress&&) noexcept;
  ~LogProgress();

  // Adds the lines that are newer than those read before. True if one had a number.
  bool Read(std::string_view log, WallTime now, LoggedProgress& progress) const;

 private:
  struct Rep;
  bool ReadBar(std::string_view begun, WallTime now, LoggedProgress& progress) const;
  explicit LogProgress(std::unique_ptr<Rep> rep);
  std::unique_ptr<Rep> rep_;
};

}  // namespace swell::elastic
