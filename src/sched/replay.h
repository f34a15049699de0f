// Replay: runs recorded cycles again (record/recorder.h) and says whether they decide the same.
//
//   Replay replay;
//   for (const std::string& record : segment) {
//     Result<std::optional<ReplayedCycle>> cycle = replay.Next(record);
//   }
//
// - Threads: none.
// - Ownership: has a model and a scheduler of its own. Records are not trusted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sched/model.h"
#include "sched/record/recorder.h"
#include "sched/scheduler.h"

namespace swell::sched {

struct ReplayedCycle {
  uint64_t number = 0;
  WallTime now;
  CycleResult result;      // of the replay
  std::string difference;  // empty: the same, bit for bit
};

class Replay {
 public:
  // Reads the next record of a segment, whose first one begins with a keyframe; a new segment may
  // follow. Nothing comes of a record without a cycle.
  Result<std::optional<ReplayedCycle>> Next(std::string_view record);
  // Null before the first record.
  const Model* model() const { return model_.get(); }

 private:
  Status Begin(Unpacker& in);
  void Apply(Unpacker& in, Tape tag);

  SharedIn shared_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Scheduler> scheduler_;
};

// The number of the cycle that comes next after the record's beginning; nullopt: not a record.
std::optional<uint64_t> NextCycleOf(std::string_view record);
// Whether it can be understood without those before it.
bool BeginsSegment(std::string_view record);

}  // namespace swell::sched
