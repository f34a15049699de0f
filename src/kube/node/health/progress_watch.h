// ProgressWatch: reads the ranks' progress records of one pod, and learns how long each phase may
// last before a rank counts as stalled.
//
// A record is 96 bytes that the SDK keeps (sdk/python/swell/progress.py has the layout). The
// longest of the last gaps between two changes, times kSafety, is the deadline of the phase; until
// enough gaps are known, a long one holds. So long evaluations and saves, which are phases of their
// own, raise no alarm.
//
// A rank's own part of a step (api::OwnPart) is averaged over windows of half a minute and at least
// 50 steps.
//
// - Threads: pure; the caller's.
// - Invariants: what is known of a process ends with it (Forget). Bounded in ranks and gaps.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "kube/api/objects/progress.h"
#include "kube/node/runtime/runtime.h"

namespace swell::node {

// The values of a record; nullopt: the bytes are another thing, or were being written.
std::optional<api::RankProgress> ParseProgressRecord(std::string_view bytes);

// The sums that a record has of a process's steps: how many, and of these the nanoseconds of its
// own work, of everything, and the numbers in the tensors of their batches.
struct OwnSums {
  int64_t steps = 0, own_ns = 0, whole_ns = 0, elements = 0;

  static OwnSums Of(std::string_view record);
};

class ProgressWatch {
 public:
  static constexpr size_t kGapsKept = 200;
  static constexpr size_t kGapsToLearn = 20;
  static constexpr int kSafety = 5;
  static constexpr Duration kLeast = std::chrono::seconds(30);
  static constexpr Duration kUnknownStep = std::chrono::minutes(10);
  static constexpr Duration kUnknownPhase = std::chrono::minutes(30);
  static constexpr Duration kOwnWindow = std::chrono::seconds(30);
  static constexpr int64_t kOwnStepsLeast = 50;

  // `bound`: a user's own least deadline of steps and data; it also holds before one is learnt.
  explicit ProgressWatch(std::optional<Duration> bound = {}) : bound_(bound) {}

  // Whether a process was seen to finish its first step.
  bool Read(const ProgressRecords& records, SteadyTime now, WallTime wall);
  // Whether a rank began or ceased to be stalled.
  bool Check(SteadyTime now);
  // The process has ended: its records count no more, unless they change.
  void Forget();
  void SetStack(int64_t file, std::string stack);

  bool empty() const { return ranks_.empty(); }
  // By rank.
  std::vector<api::RankProgress> Ranks() const;

 private:
  enum Phase { kInit, kStep, kEval, kSave, kLoad, kData, kDone, kPhases };
  struct Rank {
    std::string bytes;
    api::RankProgress now;
    SteadyTime changed;
    bool stepped = false;  // this process has finished a step
    std::array<std::deque<Duration>, kPhases> gaps;
    // Where the speed is measured from.
    int64_t from_step = 0;
    SteadyTime from;
    // Where its window of own work began.
    OwnSums window;
    SteadyTime window_from;
  };
  void Change(Rank& rank, api::RankProgress read, SteadyTime now);
  static void Measure(Rank& rank, const OwnSums& sums, bool same_group, SteadyTime now);
  Duration DeadlineOf(const Rank& rank) const;
  static Phase PhaseOf(const api::RankProgress& rank);

  std::optional<Duration> bound_;
  std::map<int64_t, Rank> ranks_;  // by the number of the file
  ProgressRecords dead_;
};

}  // namespace swell::node
