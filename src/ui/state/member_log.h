// MemberLog: what the pods of each job did, since a pages' server has watched: the lanes of a job's
// timeline, its size over time, and its checkpoints. What it knows of a job has a form as text, in
// which it outlives the process (history_keeper.h).
// - Threads: the pages' executor.
// - Invariants: at most kJobsMax jobs, of which the one that was quiet for the longest time gives
//   way; of each at most kSpansMax spans and kCheckpointsMax checkpoints, the newest.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
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
  bool restored = false;       // not seen since an earlier process wrote it down
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

// By which the log of a Deployment's pods is kept. They belong to ReplicaSets, which come and go
// with each update; the pods of all others belong to the job itself, whose uid is the key.
std::string DeploymentLogKey(std::string_view ns, std::string_view name);

class MemberLog {
 public:
  static constexpr size_t kJobsMax = 2000;
  static constexpr size_t kSpansMax = 2000;
  static constexpr size_t kCheckpointsMax = 500;

  void OnPod(const json::Value& pod, WallTime now);
  void OnPodGone(const json::Value& last, WallTime now);
  // Null: nothing is known of the job of that key.
  const JobLog* Find(std::string_view key) const;

  // The jobs of which something changed since the last call, those that gave way included.
  std::set<std::string> TakeChanged();
  // What an earlier process knew of a job; before the first pod is seen. Nonsense is left out.
  void Restore(const std::string& key, std::string_view text);
  // After all pods were seen: what is open and of a pod that is not among them ended while nobody
  // watched, at `until` or after it.
  void CloseUnseen(const std::set<std::string, std::less<>>& pod_uids, WallTime until);

 private:
  JobLog* LogOf(const std::string& key, WallTime now);
  static bool NoteCheckpoint(JobLog& log, const json::Value& pod);

  std::map<std::string, JobLog, std::less<>> jobs_;  // by key
  std::set<std::string> changed_;
};

// {"names": […], "spans": [[member, pod, state, from, to]], "checkpoints": [[time, step]]}: members
// and pods by their places in `names`, times in milliseconds.
std::string TextOf(const JobLog& log);
JobLog JobLogOf(std::string_view text);

}  // namespace swell::ui
