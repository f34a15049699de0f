// Names by which the account of Slurm's jobs is found: by the controller that makes it, and by
// commands that submit such jobs.
// - Threads: constants.
#pragma once

#include <string_view>

namespace swell::api::keys {

// A ServiceAccount of each project's namespace, and the ClusterRole that it has there.
inline constexpr std::string_view kJobAccount = "slurm-job";
inline constexpr std::string_view kJobAccountRole = "swell:slurm-job";
// A label of what the controller makes for it. An annotation of projects: "none" if their jobs
// shall have no such account.
inline constexpr std::string_view kSlurmAccount = "swell.dev/slurm-account";

}  // namespace swell::api::keys
