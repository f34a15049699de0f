// GitSync: KubeDL's annotation kubedl.io/git-sync-config, with which a job's pods begin with the
// code of a git repository: {"source": URL, "branch": …, "revision": …}. An init container fetches
// it into a volume. Each container finds it in its working directory, under the repository's name.
// - Threads: pure functions.
#pragma once

#include "base/status.h"
#include "jobs/kinds/job_kind.h"

namespace swell::jobs {

// Into the templates of all replicas. kInvalid names the annotation's field. A job without the
// annotation stays as it is.
Status AddGitSync(const json::Value& job, JobSpec& spec);

}  // namespace swell::jobs
