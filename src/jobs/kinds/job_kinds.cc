#include "jobs/kinds/job_kinds.h"

namespace swell::jobs {

#define SWELL_JOB_KIND(name) \
  void Add##name##Jobs(const JobKindOptions& options, JobKindList& kinds);
#include "jobs/kinds/job_kind_list.inc"
#undef SWELL_JOB_KIND

JobKindList MakeJobKinds(const JobKindOptions& options) {
  JobKindList kinds;
#define SWELL_JOB_KIND(name) Add##name##Jobs(options, kinds);
#include "jobs/kinds/job_kind_list.inc"
#undef SWELL_JOB_KIND
  return kinds;
}

}  // namespace swell::jobs
