// JobRequests: what processes of a job's own pods request of it (request_keys.h), and requeues.
// - Threads: pure functions.
#pragma once

#include "jobs/pass/job_pass.h"

namespace swell::jobs {

// A script may end as soon as it has asked, with any exit code: so this comes before the job's end
// and its failures. True when the pass is decided.
bool DecideRequested(JobPass& pass);

}  // namespace swell::jobs
