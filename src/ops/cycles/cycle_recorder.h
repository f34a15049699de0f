// CycleRecorder: the scheduler's last cycles on disk, for `swell replay`.
//
// The scheduler's thread hands records over; a thread of its own writes them into a RecordRing, so
// that no disk ever delays a decision. When the disk is too slow or full, records are left out up
// to the next keyframe; the log says so once.
//
// - Threads: recorder() belongs to the scheduler's thread; destroying writes what is waiting.
// - Ownership: outlives the scheduler it records.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/background_queue.h"
#include "base/record_ring.h"
#include "sched/record/recorder.h"

namespace swell::ops {

inline constexpr int64_t kRecordMibUsual = 64;

class CycleRecorder {
 public:
  // Continues the numbers of what is there already.
  static Result<std::unique_ptr<CycleRecorder>> Open(const std::string& dir, uint64_t bytes_max);
  sched::Recorder* recorder() { return &recorder_; }

 private:
  using Item = std::pair<std::string, bool>;  // a record; whether it begins a segment

  CycleRecorder(std::unique_ptr<RecordRing> ring, uint64_t bytes_max, uint64_t next_cycle);
  void Take(std::string record, bool begins);
  void Write(const Item& item);

  std::unique_ptr<RecordRing> ring_;  // the writing thread's
  bool failed_ = false;               // the writing thread's: nothing is written before a keyframe
  bool skipping_ = false;             // the scheduler's: nothing is handed over before a keyframe
  BackgroundQueue<Item> queue_;
  sched::Recorder recorder_;
};

// CycleRecorders: recorders one after another in one directory. A manager that begins anew needs a
// new one, because a record begins with the whole model.
// - Threads: the scheduler's.
// - Ownership: outlives the schedulers it records.
class CycleRecorders {
 public:
  // Nothing is recorded if `dir` is empty or `mib` is 0.
  CycleRecorders(std::string dir, int64_t mib) : dir_(std::move(dir)), mib_(mib) {}

  // Whether a record can begin.
  Status Check();
  // Ends the previous record. Null if nothing can be recorded; an unexpected cause is logged.
  sched::Recorder* Begin();

 private:
  bool on() const { return !dir_.empty() && mib_ > 0; }

  const std::string dir_;
  const int64_t mib_;
  std::unique_ptr<CycleRecorder> current_;
};

}  // namespace swell::ops
