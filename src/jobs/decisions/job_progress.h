// JobProgress: what a job's ranks report of their work: how far it is, whether its saves go well,
// whether its numbers are finite and its ranks together. It goes to the status.
// - Threads: pure functions.
#pragma once

#include "jobs/pass/job_pass.h"

namespace swell::jobs {

void NoteProgress(JobPass& pass);
// The part that says how far the first rank is. That rank may end after the end of the job.
void NoteSteps(JobPass& pass);
// A job that cannot save itself would lose what it did: its suspension waits until it can, or until
// somebody says to stop all the same.
bool SuspensionWaits(JobPass& pass);

}  // namespace swell::jobs
