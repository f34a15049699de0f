// MachineHealth: the checks of this machine and of a folder of scripts, as the source of its nodes'
// health. Nodes of one machine share what its own checks find for a moment.
// - Threads: constructed, called and destroyed on the core executor's; the checks run on a thread
//   of their own, since disks and drivers may block.
// - Ownership: the executor outlives it. The destructor waits for the check under way.
// - Invariants: at most kWaitingMax nodes wait.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "base/mutex.h"
#include "kube/node/runtime/health_source.h"
#include "kube/process/machine/machine_check.h"
#include "kube/process/machine/script_checks.h"

namespace swell::process {

struct MachineHealthOptions {
  std::string data_dir;              // whose disk is checked; empty: the machine is not checked
  std::vector<std::string> gpu_ids;  // of NVIDIA's GPUs, as their node counts them
  std::string scripts_dir;           // empty: no scripts
  bool scripts_by_node = true;       // scripts run for each node, else once for all
};

class MachineHealth final : public node::HealthSource {
 public:
  static constexpr size_t kWaitingMax = 20'000;
  static constexpr Duration kFresh = std::chrono::seconds(15);

  MachineHealth(Executor& core, MachineHealthOptions options);
  ~MachineHealth() override;
  void Check(const std::string& node, Done done) override;

 private:
  struct Request {
    std::string node;
    Done done;
  };
  void Run();
  std::vector<node::HealthReport> CheckNow(const std::string& node);

  Executor& core_;
  RealClock clock_;
  MachineHealthOptions options_;
  ScriptChecks scripts_;
  // The thread's own.
  std::vector<std::unique_ptr<MachineCheck>> checks_;
  std::vector<node::HealthReport> shared_;
  SteadyTime shared_at_;
  bool shared_known_ = false;

  Mutex mutex_;
  CondVar changed_;
  std::deque<Request> waiting_ SWELL_GUARDED_BY(mutex_);
  bool stopping_ SWELL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace swell::process
