// XdlEnv: what KubeDL's XDLJob has of its own: what its members are told, and how many workers have
// to succeed.
// - Threads: pure functions.
#pragma once

#include <string_view>

#include "jobs/kinds/role_member.h"

namespace swell::jobs {

inline constexpr std::string_view kExtendRole = "ExtendRole";  // a second kind of worker

// TASK_NAME, TASK_INDEX and XDL_CONFIG. A ZK_ADDR that the job has becomes its own place in
// ZooKeeper.
void SetXdlEnv(const ConnectedMember& member, json::Value& pod);
Status ReadXdlSpec(const json::Value& body, JobSpec& spec);

}  // namespace swell::jobs
