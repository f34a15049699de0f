// ElasticDLJob (elasticdl.org/v1alpha1): a master that hands out records and keeps the model, and
// workers that join and leave.
//
// Pods are named and labelled as ElasticDL's own client did: elasticdl-master-JOB,
// elasticdl-worker-JOB-N, label elasticdl_job_name. There is no gang: each pod is placed and
// preempted alone, by its own priority. A worker that was preempted is created again and waits for
// room. The job continues with the workers it has, waits if it has none, and ends with its master.
//
// The workers' priority is a class, or a fraction as in ElasticDL: "0.5" gives ceil(0.5 x replicas)
// of them the class high, at alternating ends of the index range, so that the job keeps a minimum
// under preemption; "high" and "low" apply to all workers. "urgent=0.5" names the class; the others
// have "low".
//
// A worker that was preempted, deleted or killed (137, not out of memory) is always created again.
// After other failures that happens relaunchOnWorkerFailure times (1) in all. Then the others
// continue without it, and the job fails when the last one has failed.
//
// - Threads: stateless; core executor only.
#pragma once

#include <memory>

#include "jobs/kinds/job_kind.h"

namespace swell::jobs {

std::unique_ptr<JobKind> MakeElasticdlJobKind(const JobKindOptions& options);

}  // namespace swell::jobs
