// WaitingLines: the jobs that wait, kept in order from one cycle to the next.
//
// Jobs that the scheduler cannot tell apart but by their age stand in one line: equal queue, user,
// priority, rights and pods, and nothing of them placed yet. What an action finds for the first of
// a line holds for the rest, so a cycle looks at a line instead of each of its jobs. Jobs that are
// unlike all others, because some of them runs or has a place promised, say, each stand alone.
//
// - Threads: none.
// - Ownership: part of the State. Touch is called where anything of a group changes; Settle, which
//   moves touched groups to where they belong, before lines are read. Lines stay as they are until
//   the next Settle, though their jobs may have started meanwhile.
// - Invariants: after Settle, each group that waits is in one line or alone.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "sched/state/shape.h"

namespace swell::sched {

struct State;

// In job order: priority, age, name.
using JobQueue = std::deque<GroupId>;

// What each job of a line needs to start.
struct LineNeed {
  bool complete = false;     // enough of its pods are there
  bool may_preempt = false;  // others may be stopped or moved for it
  QueueAmounts amounts{};    // of its queue
  int64_t gpu_ppm = 0;
};

struct WaitingLine {
  uint64_t number = 0;  // never another's
  LineNeed need;
  std::vector<int64_t> key;  // what its jobs have in common
  JobQueue jobs;             // empty: a free record
  bool stale = false;        // `need` is to be read again
};

class WaitingLines {
 public:
  void Touch(GroupId group) {
    const auto id = static_cast<size_t>(group);
    if (id >= places_.size()) places_.resize(id + 1);
    if (places_[id].touched) return;
    places_[id].touched = true;
    touched_.push_back(group);
  }
  // Its priority, age or names are others.
  void TouchRank(GroupId group) {
    Touch(group);
    places_[group].moved = true;
  }
  // What lines have in common is read anew.
  void TouchAll();
  void Settle(const State& state);

  // Empty ones among them.
  const std::vector<WaitingLine>& lines() const { return lines_; }
  // In no line with others.
  const JobQueue& alone() const { return alone_; }
  // The line of a group; null: it does not wait, or stands alone.
  const WaitingLine* LineOf(GroupId group) const;
  size_t size() const { return size_; }
  // Groups that waited and no longer do, since this was called last.
  std::vector<GroupId> TakeGone();
  // Job order, for groups that were there at the last Settle.
  bool Before(const State& state, GroupId a, GroupId b) const;
  // The first job of the line that does not come before the group, or that comes after it.
  size_t FirstNotBefore(const State& state, const JobQueue& jobs, GroupId group) const;
  size_t FirstAfter(const State& state, const JobQueue& jobs, GroupId group) const;
  // All that wait, in job order.
  std::vector<GroupId> InOrder(const State& state) const;

  // For tests: no line has more than one job.
  void KeepApart(bool apart) {
    apart_ = apart;
    TouchAll();
  }

 private:
  static constexpr int32_t kAlone = -2;
  // What a comparison reads first: groups lie far apart in memory.
  struct Rank {
    int64_t before = 0;  // negative priority
    int64_t creation_ns = 0;
    std::array<uint64_t, 2> name{};  // its first bytes, in natural order
    auto operator<=>(const Rank&) const = default;
  };
  struct Place {
    Rank rank;
    int32_t line = kNone;  // index into lines_, or kAlone
    bool touched = false;
    bool moved = false;  // since the last Settle, perhaps
  };

  static Rank RankOf(const State& state, GroupId group);
  int32_t LineFor(const State& state, GroupId group);
  JobQueue& JobsOf(int32_t line) { return line == kAlone ? alone_ : lines_[line].jobs; }
  void Drop(const std::map<int32_t, std::vector<GroupId>>& leavers);
  void Insert(const State& state, JobQueue& jobs, std::vector<GroupId>& more);
  void ReadNeeds(const State& state);

  std::vector<Place> places_;  // by GroupId
  std::vector<GroupId> touched_;
  std::vector<GroupId> gone_;
  std::vector<WaitingLine> lines_;
  std::vector<int32_t> free_lines_;
  std::vector<int32_t> stale_lines_;
  std::map<std::vector<int64_t>, int32_t> by_key_;
  JobQueue alone_;
  std::vector<int64_t> key_;  // of the group that was looked at last
  int32_t last_line_ = kNone;
  size_t size_ = 0;
  uint64_t last_number_ = 0;
  bool apart_ = false;
};

}  // namespace swell::sched
