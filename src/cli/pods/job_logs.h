// Logs of a job: what its members ran before a preemption, a restart or a deletion of their pods,
// then what they run now.
// - Threads: one thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "cli/pods/pod_logs.h"
#include "cli/views/job_view.h"

namespace swell::cli {

struct JobLogOptions {
  LogOptions logs;
  bool all = false;     // all members
  std::string member;   // a pod's name; empty: the member that leads
  int64_t attempt = 0;  // of the member, counted from 1; 0: all of them
  // With `follow`: a pod whose log is followed from now on.
  std::function<void(const json::Value& pod)> on_live;

  // Those of `logs`, --attempt and --previous. runai has another meaning for -p.
  void Declare(Flags& flags, std::string_view previous = "-p,--previous");
  Status Check() const;
};

// Pods of Kubernetes' own kinds do not report the end of their log. So this reads the last line for
// the job's failure from the log itself, if it can be read.
void QuoteLastLine(Api& api, JobView& job);

// With `follow`, until the job ends.
Status PrintJobLogs(Session& session, Api& api, JobView job, const JobLogOptions& options);

}  // namespace swell::cli
