// MakeSshKey: a key pair with which programs of one job reach each other by SSH: ECDSA on P-521,
// as Kubeflow's mpi-operator makes them.
// - Threads: any.
#pragma once

#include <string>

#include "base/result.h"

namespace swell::net {

struct SshKey {
  std::string private_pem;  // SEC 1, as ssh and sshd read it
  std::string public_line;  // of authorized_keys, with its newline
};

Result<SshKey> MakeSshKey();

}  // namespace swell::net
