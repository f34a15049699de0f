// The annotation that lets a job's pods begin with a container that fetches the code they run.
// - Threads: constants.
#pragma once

#include <string_view>

namespace swell::api::keys {

// KubeDL's, on jobs; a JSON object (jobs/kinds/git_sync.h).
inline constexpr std::string_view kGitSync = "kubedl.io/git-sync-config";

}  // namespace swell::api::keys
