// Flags of the leader election among the replicas of `swell controller`.
// - Threads: main thread.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/flags.h"
#include "kube/client/leader_elector.h"

namespace swell::ops {

struct ElectionFlags {
  bool elect = true;  // false: this process leads at once, whatever others do
  std::string ns;     // of the lease and of the controller's other objects
  std::string name;
  std::string lease_duration = "4s";
  std::string renew_deadline = "3s";
  std::string retry_period = "500ms";
};
void AddElectionFlags(cli::Flags& declared, ElectionFlags& to);
// The identity is for the caller to set. Misuse unless the times allow one leader at a time only.
Result<client::LeaderOptions> ReadElection(const ElectionFlags& flags);

}  // namespace swell::ops
