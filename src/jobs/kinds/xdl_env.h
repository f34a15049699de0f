// XdlEnv: the environment of the members of KubeDL's XDLJob, and how many of its workers have to
// succeed.
// - Threads: pure functions.
#pragma once

#include <string_view>

#include "jobs/kinds/role_member.h"

namespace swell::jobs {

inline constexpr std::string_view kExtendRole = "ExtendRole";  // a second kind of worker

// TASK_NAME, TASK_INDEX and XDL_CONFIG. The job's UID is added to the path of a ZK_ADDR.
void SetXdlEnv(const ConnectedMember& member, json::Value& pod);
Status ReadXdlSpec(const json::Value& body, JobSpec& spec);

}  // namespace swell::jobs
