// MachineCheck: one check of this machine's health. Add one: a class, and a line in
// machine_health.cc.
// - Threads: one, which may block.
#pragma once

#include "kube/node/runtime/health_source.h"

namespace swell::process {

class MachineCheck {
 public:
  virtual ~MachineCheck() = default;
  virtual node::HealthReport Run() = 0;
};

}  // namespace swell::process
