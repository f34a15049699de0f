// GateRequest: what a job waits for before it may run, as flags say it and as the job has it
// (kube/api/meta/gate_keys.h).
// - Threads: values and pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/views/job_view.h"
#include "json/value.h"

namespace swell::cli {

struct GateRequest {
  std::string start_after;  // "afterok:a:b,afterany:c"
  std::optional<WallTime> not_before;
  std::string array;    // its name; empty: none
  int64_t at_once = 0;  // of the array; 0: all
  bool fail_if_never = false;
  bool held = false;

  bool closed() const { return !start_after.empty() || not_before || at_once > 0; }
};

// Suspends the job, and notes what it waits for. A job that waits for nothing stays as it is.
void SetGate(json::Value& job, const JobKindInfo& kind, const GateRequest& gate);

// "0-99%8", "1,3,5-9:2".
struct ArrayRange {
  static constexpr size_t kTasksMax = 1000;
  std::vector<int64_t> ids;  // ascending
  int64_t at_once = 0;       // 0: all
};
Result<ArrayRange> ParseArrayRange(std::string_view flag, std::string_view text);

}  // namespace swell::cli
