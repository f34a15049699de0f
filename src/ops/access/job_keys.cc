#include "ops/access/job_keys.h"

#include <utility>

#include "kube/net/tls/ssh_key.h"

namespace swell::ops {

Result<jobs::SshKeyPair> MakeJobKey() {
  SWELL_ASSIGN_OR_RETURN(net::SshKey key, net::MakeSshKey());
  return jobs::SshKeyPair{std::move(key.private_pem), std::move(key.public_line)};
}

}  // namespace swell::ops
