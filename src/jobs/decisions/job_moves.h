// JobMoves: jobs that are held to a type of GPU (gpu_type_keys.h). A job whose members were made
// for another type stops whole, at their notice, and starts again from its checkpoint.
//
// A hold is for running: a job that is stopped for another reason, or finds no room on that type,
// may be placed on any. So no job waits for GPUs that it does not need.
//
// - Threads: pure functions.
#pragma once

#include "jobs/pass/job_pass.h"

namespace swell::jobs {

// Comes before the job's end: a script may well exit with 0 when it is stopped. True when the pass
// is decided.
bool DecideMoved(JobPass& pass);
// The job may be placed on any type.
void EndHold(JobPass& pass);

}  // namespace swell::jobs
