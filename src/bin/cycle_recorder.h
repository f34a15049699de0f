// CycleRecorder: the scheduler's last cycles on disk, for `swell replay`.
//
// The scheduler's thread hands records over; a thread of its own writes them into a RecordRing, so
// that no disk ever delays a decision. When the disk is too slow or full, records are left out up
// to the next keyframe; the log says so once.
//
// Ownership: outlives the scheduler it records. Thread-safety: recorder() belongs to the
// scheduler's thread; destroying writes what is waiting.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "base/record_ring.h"
#include "sched/recorder.h"

namespace swell {

inline constexpr int64_t kRecordMibUsual = 64;

class CycleRecorder {
 public:
  // Goes on with the numbers of what is there already.
  static Result<std::unique_ptr<CycleRecorder>> Open(const std::string& dir, uint64_t bytes_max);
  ~CycleRecorder();

  sched::Recorder* recorder() { return &recorder_; }

 private:
  using Item = std::pair<std::string, bool>;  // a record; whether it begins a segment

  CycleRecorder(std::unique_ptr<RecordRing> ring, uint64_t bytes_max, uint64_t next_cycle);
  void Take(std::string record, bool begins);
  void Work();
  void Write(const Item& item);

  std::unique_ptr<RecordRing> ring_;  // the writing thread's
  bool failed_ = false;               // the writing thread's: nothing is written before a keyframe
  Mutex mutex_;
  CondVar changed_;
  std::deque<Item> waiting_ SWELL_GUARDED_BY(mutex_);
  size_t waiting_bytes_ SWELL_GUARDED_BY(mutex_) = 0;
  bool skipping_ SWELL_GUARDED_BY(mutex_) = false;
  bool ending_ SWELL_GUARDED_BY(mutex_) = false;
  sched::Recorder recorder_;
  std::thread thread_;
};

}  // namespace swell
