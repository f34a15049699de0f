// MachineGuard: keeps containers that use the machine's network from what only the machine should
// reach.
//
// The catalogue's git-sync runs on the machine's network, since pods' networks lead no further than
// the machine. Its variables come from the pod, so its programs may be anything. The kernel tells
// them by the user ids of pods: they reach name servers, and whatever is beyond this machine, but
// neither services on the machine's own addresses nor pods. The table outlives swell, as pods do.
//
// - Threads: none; calls block for milliseconds.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace swell::process {

struct MachineGuardSpec {
  std::string table;
  std::string bridge;    // that of the pods
  int64_t first_id = 0;  // the user ids of pods, both included
  int64_t last_id = 0;
};

Status GuardMachine(const MachineGuardSpec& spec);
void UnguardMachine(const MachineGuardSpec& spec);

}  // namespace swell::process
