// ElasticDLJob (elasticdl.org/v1alpha1): a master that hands out records and keeps the model, and
// workers that join and leave.
//
// Pods are named and labelled as ElasticDL's own client did: elasticdl-master-JOB,
// elasticdl-worker-JOB-N, label elasticdl_job_name. There is no gang: each pod is placed and
// preempted alone, by its own priority. A worker that was preempted is created again and waits for
// room. The job continues with the workers it has, waits if it has none, and ends with its master.
//
// A worker's priority class is a class, or a part of the workers as ElasticDL's fraction syntax
// says it: "0.5" gives ceil(0.5 x replicas) of them the high class, at alternating ends of the
// index range, so that the job keeps a floor under preemption; "high" and "low" give all of them
// one. "urgent=0.5" is the same with a class by name, "low" being that of the others.
//
// Relaunching: what was preempted, deleted or killed (137, not out of memory) always comes back;
// other failures of a worker relaunchOnWorkerFailure times (1) in all, then the others go on
// without it, and the job fails when the last one has.
//
// - Threads: stateless; core executor only.
#pragma once

#include <memory>

#include "jobs/job_kind.h"

namespace swell::controllers {

std::unique_ptr<JobKind> MakeElasticdlJobKind(JobKindOptions options);

}  // namespace swell::controllers
