// JobAttempts: the pods that a job's members had before those they have now, in status.attempts:
// where each ran, how it ended, and under which number its log is found.
// - Threads: core executor only.
// - Ownership: belongs to the JobController; holds ended pods until the job's status names them.
// - Invariants: bounded per job, in memory and in the status; the newest stay.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>

#include "base/clock.h"
#include "json/value.h"

namespace swell::jobs {

class JobAttempts {
 public:
  // A large job has only its first members noted, and others that failed.
  static constexpr size_t kMembersNoted = 16;
  static constexpr size_t kNotedMax = 64;

  // The pod of a job that exists is gone from the API.
  void OnPodGone(const std::string& job_uid, const json::SharedValue& pod);
  void Forget(const std::string& job_uid) { gone_.erase(job_uid); }
  // Adds to `status` what it does not name yet. `first_members` are pods' names. `suspended`: the
  // job is, so its pods were told to stop.
  void Note(const std::string& job_uid,
            const std::set<std::string>& first_members,
            bool suspended,
            WallTime now,
            json::Value& status);

 private:
  std::map<std::string, std::deque<json::SharedValue>> gone_;  // by the job's uid
};

}  // namespace swell::jobs
