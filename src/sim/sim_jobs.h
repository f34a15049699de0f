// The jobs that people submit to a simulated cluster, as JSON.
// - Threads: pure.
#pragma once

#include <cstdint>
#include <string>

#include "json/value.h"

namespace swell::sim {

// A pod that runs so long and exits with `code`; told to stop, it takes `stop_s`.
struct PodShape {
  int gpus = 0;
  uint64_t run_s = 0, stop_s = 0;
  int code = 0;
  std::string priority = {};  // class
};

struct JobShape {
  std::string ns, name;
  int members = 1;
  PodShape pod;
  bool goodput = false;  // an elastic job begins with one member, and is scaled by goodput
};

// A gang: a master, and a worker for each of the other members.
json::Value PyTorchJob(const JobShape& job,
                       const std::string& restart_policy,
                       const std::string& on_preemption);
// Elastic: one member is enough.
json::Value TrainingJob(const JobShape& job);
// Two at a time, each by itself.
json::Value BatchJob(const JobShape& job);

}  // namespace swell::sim
