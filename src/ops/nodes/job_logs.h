// The logs of pods that are gone are kept as long as their job.
// - Threads: the core executor.
#pragma once

#include "kube/controllers/context.h"
#include "kube/node/runtime/runtime.h"

namespace swell::ops {

// Has the runtime forget the logs of each job that goes, and of those that went while nobody
// looked. Follows the kinds of jobs that have an informer by now. Both arguments live as long as
// the informers run.
void ForgetLogsWithTheirJobs(controllers::Informers& informers, node::Runtime& runtime);

}  // namespace swell::ops
