// PastJobs: what a cluster knows of jobs that are over, from their objects and from the account of
// each day, as jobs that the laboratory can play.
//
// - Threads: plain values and pure functions.
// - Invariants: a job that has an object and a row in the accounts is counted once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli/views/job_view.h"
#include "cli/views/project_view.h"
#include "kube/client/usage_record.h"
#include "lab/history.h"

namespace swell::ops {

struct PastJobs {
  std::vector<lab::PastJob> jobs;
  int64_t left_out = 0;  // they used no GPU, never began or still run
  int64_t unclear = 0;   // rows of the accounts that say too little of a job, or of a service
};

// Values of PriorityClasses by name.
using PriorityValues = std::map<std::string, int, std::less<>>;

// Jobs that were submitted at or after `since`. `days` may be empty. The accounts do not keep
// priorities: jobs that have no object, and those that name no class, have that of "train".
PastJobs PastJobsOf(const std::vector<cli::JobView>& views,
                    const cli::ProjectTree& projects,
                    const PriorityValues& priorities,
                    const std::vector<client::UsageDay>& days,
                    WallTime since);

}  // namespace swell::ops
