// ElasticSize: how large an elastic job is, how large it may be, why it is not larger, and how that
// went: status.elastic, of which people see tables and charts. In a status that has only what its
// kind's users know, it is `size`: behind what their documents show.
// - Threads: core executor only.
// - Ownership: belongs to the JobController.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "jobs/pass/job_pass.h"
#include "kube/api/objects/job.h"

namespace swell::jobs {

class ElasticSize {
 public:
  // `preempted`: the message of a preempted member that is gone already; empty: none is.
  void Fill(JobPass& pass, const std::string& preempted);
  void Forget(const std::string& job_uid) { resizing_.erase(job_uid); }

 private:
  // Members of the roles that may change size.
  struct Now {
    int64_t least = 0, most = 0, desired = 0, now = 0;
  };
  void ReportResize(JobPass& pass, const Now& size);
  // Adds the change to the job's history, and reports it if nobody else does.
  void NoteChange(JobPass& pass,
                  const Now& size,
                  const std::vector<api::SizeChange>& changes,
                  const std::string& preempted,
                  json::Array& history) const;
  void CountShrinks(const JobPass& pass,
                    const Now& size,
                    const api::JobSize& known,
                    const std::string& preempted,
                    json::Object& status) const;

  // How many members ran when another number was requested, by their job's uid; until the change is
  // reported.
  std::map<std::string, int64_t> resizing_;
};

}  // namespace swell::jobs
