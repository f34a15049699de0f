// JobHealth: whether a job hangs and which of its ranks are slow, and what is done about it.
// - Threads: core executor only.
// - Ownership: belongs to the JobController.
#pragma once

#include <map>
#include <string>

#include "jobs/pass/job_pass.h"

namespace swell::jobs {

class JobHealth {
 public:
  // Only told: what a slow rank costs depends on how the ranks share their work.
  void NoteStragglers(JobPass& pass);
  // True when the job is over, or starts again, because it hangs.
  static bool DecideHang(JobPass& pass);
  void Forget(const std::string& job_uid) { slow_since_.erase(job_uid); }

 private:
  struct SlowSince {
    WallTime time;
    int64_t windows = 0;  // api::OwnPart::windows then
  };
  // Since when ranks are slow, by their job's uid; only of jobs that have such.
  std::map<std::string, std::map<int64_t, SlowSince>> slow_since_;
};

}  // namespace swell::jobs
