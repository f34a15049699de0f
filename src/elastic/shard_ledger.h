// ShardLedger: which worker trains which records of a data set, which are done, and which are left.
//
//   ShardLedger ledger({.records = 60'000, .records_per_task = 100, .epochs = 2, .seed = 7});
//   auto handed = ledger.Next("worker-0", now);          // a lease of a range of records
//   ledger.Progress("worker-0", handed.lease.id, 40, now);
//   ledger.Leave("worker-0", now);                       // the other 60 go to another worker
//
// Accounting. Each record of each epoch is handed out in a range, under a lease that one worker
// holds. The holder reports its progress. If a lease ends early, its remaining records are handed
// out next. So a record counts as done exactly once per epoch. With `exact_progress` (progress is
// reported in the same step that puts the records into the model) it was also *used* exactly once.
// Without it, a worker that dies silently may have used records that it had not reported; their
// number is bounded by `repeated_max`.
//
// Tries. A range that hangs, or whose holder reports failure, is retried at most tries_max times;
// then the ledger has failed and gives a reason. Preemption and crashes do not count as tries. No
// range is ever dropped.
//
// Order. Seed and epoch determine the order of ranges. The next epoch begins when all ranges of
// this one are handed out.
//
// - Threads: not thread-safe; one thread uses it. Callers pass the time, so a journal of calls
//   replays exactly.
// - Invariants: done + leased + returned + not yet handed out = records x epochs.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "json/value.h"

namespace swell::elastic {

struct LedgerOptions {
  int64_t records = 0;
  int64_t records_per_task = 1;
  int64_t epochs = 1;
  bool shuffle = true;
  uint64_t seed = 1;
  int64_t tries_max = 3;
  // A lease hangs when it shows no progress for longer than `hang_floor`, and longer than
  // `hang_factor` times the slowest range.
  int64_t hang_factor = 3;
  Duration hang_floor = std::chrono::seconds(300);
  Duration worker_timeout = std::chrono::seconds(30);  // silent for so long: lost
  bool exact_progress = false;
  int64_t workers_max = 10'000;

  // kInvalid names the field.
  Status Check() const;
};

struct Range {
  int64_t epoch = 0;
  int64_t start = 0, end = 0;  // records
  int64_t tries = 0;

  int64_t size() const { return end - start; }
};

struct Lease {
  int64_t id = 0;
  std::string worker;
  Range range;
  int64_t done = 0;
  WallTime since;  // handed out, or the last progress
  WallTime begun;
};

struct Handout {
  enum class Kind { kLease, kWait, kFinished, kFailed };
  Kind kind = Kind::kWait;
  Lease lease;
};

struct WorkerView {
  std::string name;
  int64_t leases = 0;
  int64_t records = 0;       // done so far
  double records_per_s = 0;  // recently
  Duration silent{0};
  bool straggler = false;  // slower than half of the median
};

class ShardLedger {
 public:
  // `options` have passed Check. Lease ids begin at `first_lease`.
  ShardLedger(LedgerOptions options, int64_t first_lease);

  const LedgerOptions& options() const { return options_; }

  // Makes the worker known, or says that it lives. kTooManyRequests above workers_max.
  Status Alive(std::string_view worker, WallTime now);
  Result<Handout> Next(std::string_view worker, WallTime now);
  // `done`: how many of the lease's records are finished in total. The last one ends the lease.
  // kNotFound if the worker does not hold the lease, or no longer: another worker may have its
  // records.
  Status Progress(std::string_view worker, int64_t lease, int64_t done, WallTime now);
  // The range could not be done; counts as a try.
  Status Failed(std::string_view worker, int64_t lease, std::string_view why, WallTime now);
  // The worker holds these leases and no others: it has forgotten them, or never heard of them.
  // True when that gave something back.
  bool HoldsOnly(std::string_view worker, const std::vector<int64_t>& leases);
  // The worker goes after it has told its progress: nothing is unsure.
  void Leave(std::string_view worker, WallTime now);
  // The worker is gone without a word.
  void Lost(std::string_view worker, WallTime now);

  struct Expired {
    std::vector<std::string> lost;  // workers that are silent
    std::vector<int64_t> hung;      // leases

    bool empty() const { return lost.empty() && hung.empty(); }
  };
  Expired FindExpired(WallTime now) const;
  // Takes back what they hold. A hung lease counts as a try.
  void Expire(const Expired& expired);
  // Called after a time in which no worker could be heard: it does not count as silence.
  void ForgiveSilence(WallTime now);
  // Ends all leases, when training continues from another model than the holders have.
  void ReturnLeases();

  bool finished() const { return failure_.empty() && left() == 0; }
  const std::string& failure() const { return failure_; }  // empty: none
  int64_t done() const { return done_; }
  int64_t left() const { return options_.records * options_.epochs - done_; }
  int64_t epoch() const { return epoch_; }  // that is being handed out
  int64_t next_lease() const { return next_lease_; }
  int64_t repeated_max() const { return repeated_max_; }
  int64_t handed_out() const { return handed_out_; }
  int64_t returned() const { return returned_count_; }  // ranges that came back, by any cause
  const std::map<int64_t, Lease>& leases() const { return leases_; }
  // By name; medians are over those that have finished a range.
  std::vector<WorkerView> Workers(WallTime now) const;
  size_t worker_count() const { return workers_.size(); }

  // All of it. Restore is kInvalid for a snapshot that another ledger wrote, or that does not add
  // up.
  json::Value Snapshot() const;
  static Result<ShardLedger> Restore(const json::Value& snapshot, int64_t first_lease);

 private:
  struct Worker {
    WallTime seen;
    std::set<int64_t> leases;
    int64_t records = 0;
    double records_per_s = 0;
  };

  int64_t TasksPerEpoch() const;
  bool TakeRange(Range& range);
  void EndLease(std::map<int64_t, Lease>::iterator lease);
  // Whether the records are known that were done of a range, and whether giving it back counts as a
  // try.
  enum class Records { kReported, kUncertain };
  enum class Try { kCounts, kFree };
  void GiveBack(std::map<int64_t, Lease>::iterator lease, Records records, Try tried);
  void Drop(std::string_view worker, Records records);
  Result<std::map<int64_t, Lease>::iterator> Held(std::string_view worker, int64_t lease);
  Duration HangAfter() const;
  Status ReadSnapshot(const json::Value& snapshot);
  bool AddsUp() const;

  LedgerOptions options_;
  int64_t epoch_ = 0;  // of the ranges handed out for the first time
  int64_t next_ = 0;   // task of that epoch, before shuffling
  std::deque<Range> returned_;
  std::map<int64_t, Lease> leases_;
  std::map<std::string, Worker, std::less<>> workers_;
  int64_t next_lease_ = 1;
  int64_t done_ = 0;
  int64_t handed_out_ = 0;
  int64_t returned_count_ = 0;
  int64_t repeated_max_ = 0;
  Duration slowest_{0};
  std::string failure_;
};

// The place of `index` in a permutation of [0, count) that the seed fixes; takes no memory.
int64_t Shuffled(int64_t index, int64_t count, uint64_t seed);

}  // namespace swell::elastic
