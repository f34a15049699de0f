// MemberLog: what the pods of each job did, since the pages' server has watched: the lanes of a
// job's timeline, its size over time, and its checkpoints.
// - Threads: the pages' executor.
// - Invariants: at most kJobsMax jobs, of which the one that was quiet for the longest time gives
//   way; of each at most kSpansMax spans and kCheckpointsMax checkpoints, the newest.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "json/value.h"

namespace swell::ui {

struct MemberSpan {
  std::string member;  // the pod's name
  std::string uid;     // of the pod
  std::string state;   // queued, starting, running, saving, preempted, resuming
  WallTime from;
  std::optional<WallTime> to;  // absent: until now
};

struct JobLog {
  std::deque<MemberSpan> spans;  // as they began
  struct Checkpoint {
    WallTime time;
    int64_t step = 0;
  };
  std::deque<Checkpoint> checkpoints;
  WallTime changed;
};

class MemberLog {
 public:
  static constexpr size_t kJobsMax = 2000;
  static constexpr size_t kSpansMax = 2000;
  static constexpr size_t kCheckpointsMax = 500;

  void OnPod(const json::Value& pod, WallTime now);
  void OnPodGone(const json::Value& last, WallTime now);
  // Null: nothing is known of the job of that uid.
  const JobLog* Find(std::string_view job_uid) const;

 private:
  JobLog* LogOf(const json::Value& pod, WallTime now);
  static void NoteCheckpoint(JobLog& log, const json::Value& pod);

  std::map<std::string, JobLog, std::less<>> jobs_;  // by uid
};

}  // namespace swell::ui
