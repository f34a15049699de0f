// JobMembers: builds the pods and PodGroups of a job, for JobController and for plans of jobs that
// have not been created.
// - Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "jobs/kinds/job_kind.h"

namespace swell::jobs {

// A job as its kind reads it. What it points at outlives it.
struct JobParts {
  const JobKind& kind;
  const json::Value& job;
  const JobSpec& spec;
  std::string_view gang_class;  // of spec
};

json::Value MakeMember(const JobParts& parts, const ReplicaSpec& replica, int64_t index);
// "JOB", or "JOB.CLASS" of members beyond the minimum that have a class of their own.
json::Value MakePodGroup(const JobParts& parts, const std::string& name);
// The job's gang before it has any place: its PodGroup, then the pods that are in it.
// kInvalid names the field that cannot be read; kNotAcceptable where members have no gang.
Result<json::Array> MakeGang(const JobKind& kind, const json::Value& job);

}  // namespace swell::jobs
