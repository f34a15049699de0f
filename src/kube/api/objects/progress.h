// Progress: how far the ranks of a pod and a job as a whole have come, as annotations and statuses
// carry it. The SDK's records become RankProgress in the node agent; jobs are made of those.
// - Threads: pure functions.
// - Invariants: the numbers come from the training script: every reader copes with nonsense.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "json/value.h"

namespace swell::api {

namespace keys {
// On pods: the ranks of the pod, as JSON.
inline constexpr std::string_view kProgress = "swell.dev/progress";
// On pods: the save that failed last, as JSON; empty: the last one went well.
inline constexpr std::string_view kSaveError = "swell.dev/save-error";
// On pods and jobs: the seconds without a change after which a rank counts as stuck, at the least.
inline constexpr std::string_view kHangSeconds = "swell.dev/hang-seconds";
// On jobs: "true": a suspension does not wait for a save that fails.
inline constexpr std::string_view kSuspendUnsaved = "swell.dev/suspend-unsaved";
// On jobs: the pattern that finds steps in the log of a script that reports none, or "auto".
inline constexpr std::string_view kProgressPattern = "swell.dev/progress-pattern";
// On jobs: Report, Restart or Stop.
inline constexpr std::string_view kOnHang = "swell.dev/on-hang";
}  // namespace keys

// More ranks of one pod are not read.
inline constexpr size_t kRanksPerPodMax = 16;

// How long a rank's own part of a step takes: a step without waits for other ranks. Means of the
// steps of one window; the node agent begins a window when the one before is over.
struct OwnPart {
  int64_t windows = 0;  // how many are over; 0: nothing is known
  double own_ms = 0, step_ms = 0;
  double elements = 0;  // numbers in the tensors of its batch; 0: not known
};

struct RankProgress {
  int64_t file = 0;  // the number in the name of its record: the rank that it began as
  int64_t rank = 0, world = 0;
  std::string phase;  // init, step, eval, save, load, data or done
  int64_t step = 0, total = 0;
  int64_t epoch = 0, epochs = 0;
  int64_t pid = 0;       // in the container
  int64_t repeated = 0;  // steps that were done twice because of a loss
  double steps_per_second = 0;
  OwnPart own;
  WallTime changed;  // the last time that the record changed
  bool stalled = false;
  int64_t deadline_seconds = 0;  // how long its phase may last
  std::string stack;             // of a rank that is stalled

  bool done() const { return phase == "done"; }
  // The calls of its main thread, the outermost first, as "File "train.py", line 12 in step".
  // Empty: its stack is not known.
  std::vector<std::string> Calls() const;
  // The innermost call, or why it is not known.
  std::string Top() const;
};

json::Value RanksToJson(const std::vector<RankProgress>& ranks);
// What the pod reports; empty if it reports nothing that can be read.
std::vector<RankProgress> RanksOf(const json::Value& pod);
// Progress that a pattern found in the log belongs to no process.
bool UsesSdk(const json::Value& pod);

struct FailedSave {
  int64_t step = 0;
  std::string reason;
};
std::optional<FailedSave> FailedSaveOf(const json::Value& pod);

// status.progress of a job, named as in Kubeflow's TrainJob.
struct JobProgress {
  std::string phase;
  int64_t step = 0, total = 0, epoch = 0, epochs = 0, world = 0;
  double steps_per_second = 0;               // 0: not known
  std::optional<int64_t> percentage;         // known with `total`
  std::optional<int64_t> remaining_seconds;  // known with `total` and the speed
  WallTime updated;

  static JobProgress Of(const RankProgress& lead);
  json::Value ToJson() const;
};
std::optional<JobProgress> ProgressOfJob(const json::Value& job);

// A shell script that prints the state of a rank's process and, where the SDK has a handler for it,
// the stacks of its threads. It signals only a process that handles the signal.
std::string StacksScript(const RankProgress& rank);

}  // namespace swell::api
