// MakeJobKey: the SSH keys of jobs (jobs::JobKindOptions), made by OpenSSL.
// - Threads: any.
#pragma once

#include "base/result.h"
#include "jobs/kinds/job_kind.h"

namespace swell::ops {

Result<jobs::SshKeyPair> MakeJobKey();

}  // namespace swell::ops
