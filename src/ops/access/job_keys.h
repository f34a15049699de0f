// MakeJobKey: the SSH keys of jobs (controllers::JobKindOptions), made by OpenSSL.
// - Threads: any.
#pragma once

#include "base/result.h"
#include "jobs/kinds/job_kind.h"

namespace swell {

Result<controllers::SshKeyPair> MakeJobKey();

}  // namespace swell
