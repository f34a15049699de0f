// JobCountChecker: checks that jobs count what happened to their pods, even if processes die in
// between.
//
//   - the scheduler marks a pod before it deletes it;
//   - no job counts a pod as failed, or as a restart, that was marked as preempted before it ended
//     or was asked to go;
//   - a batch Job counts no success that was not, and when it is complete none is missing.
//
// - Threads: one thread.
// - Ownership: the history outlives it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "sim/sim_history.h"

namespace swell::sim {

class JobCountChecker {
 public:
  explicit JobCountChecker(SimHistory& history);

 private:
  struct Pod {
    std::string name;
    bool marked = false;     // as preempted
    bool ending = false;     // over, or asked to go
    bool excused = false;    // marked before that
    bool failed = false;     // over in vain, and not excused
    bool succeeded = false;  // over
    bool in_time = false;    // so, and nobody had asked it to go
  };
  struct Job {
    std::string key;              // "resource ns/name"
    std::set<std::string> pods;   // uids of all that it ever had
    std::set<std::string> named;  // uids of those that it said have failed
  };

  void OnChange(const store::Change& change);
  void OnWrite(const api::RestRequest& request);
  void OnPod(const json::Value& object);
  void OnGroup(const json::Value& object);
  void OnJob(const std::string& key, const json::Value& object);
  void OnBatchJob(const json::Value& object, Job& job);
  static void End(Pod& pod);
  int64_t Count(const Job& job, bool Pod::*fact) const;

  SimHistory& history_;
  std::map<std::string, Pod, std::less<>> pods_;  // by uid, also those that are gone
  std::map<std::string, Job, std::less<>> jobs_;  // by uid; other owners of pods, too
};

}  // namespace swell::sim
