// MarsEnv: the environment of the members of KubeDL's MarsJob, and the memory of its workers.
// - Threads: pure functions.
#pragma once

#include "jobs/kinds/role_member.h"

namespace swell::jobs {

// MARS_*. Workers have the volumes for which spec.workerMemoryTuningPolicy asks.
void SetMarsEnv(const ConnectedMember& member, json::Value& pod);
Status ReadMarsSpec(const json::Value& body, JobSpec& spec);

}  // namespace swell::jobs
