// MakeJobKinds: every kind of job that Swell runs itself.
//
// The kinds are the files in JOB_KINDS of this folder's CMakeLists.txt; each foo_job.cc defines
// AddFooJobs. The rest of a kind (its definition, columns and fields) is in
// kube/api/schemas/crds.txt.
//
// - Threads: core executor only.
#pragma once

#include <memory>
#include <vector>

#include "autoscaling/goodput_target.h"
#include "autoscaling/metric_specs.h"
#include "autoscaling/scale_target.h"
#include "jobs/kinds/job_kind.h"

namespace swell::jobs {

struct JobKindEntry {
  std::unique_ptr<JobKind> kind;
  autoscaling::ReadScaleTarget scale =
      nullptr;  // for scaling by the throughput that the job reports
  autoscaling::ReadTargetRole target = nullptr;    // for scaling to a target
  autoscaling::ReadGoodputRole goodput = nullptr;  // for scaling by goodput
};
using JobKindList = std::vector<JobKindEntry>;

JobKindList MakeJobKinds(const JobKindOptions& options);

}  // namespace swell::jobs
