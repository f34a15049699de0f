#include "kube/process/machine/machine_health.h"

#include <utility>

#include "kube/process/machine/gpu_check.h"
#include "kube/process/machine/machine_checks.h"

namespace swell::process {

MachineHealth::MachineHealth(Executor& core, MachineHealthOptions options)
    : core_(core), options_(std::move(options)), scripts_(options_.scripts_dir, options_.data_dir) {
  if (!options_.data_dir.empty()) {
    checks_.push_back(std::make_unique<DiskCheck>(options_.data_dir));
    checks_.push_back(std::make_unique<MemoryCheck>());
    checks_.push_back(std::make_unique<ClockCheck>());
  }
  if (!options_.gpu_ids.empty())
    checks_.push_back(std::make_unique<GpuCheck>(clock_, options_.gpu_ids));
  thread_ = std::thread([this] { Run(); });
}

MachineHealth::~MachineHealth() {
  scripts_.Stop();
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void MachineHealth::Check(const std::string& node, Done done) {
  {
    MutexLock lock(mutex_);
    // A node that finds no place is checked again when its round has taken too long.
    if (waiting_.size() == kWaitingMax) return;
    waiting_.push_back({node, std::move(done)});
  }
  changed_.NotifyAll();
}

std::vector<node::HealthReport> MachineHealth::CheckNow(const std::string& node) {
  if (!shared_known_ || clock_.Steady() - shared_at_ >= kFresh) {
    shared_.clear();
    for (const auto& check : checks_) shared_.push_back(check->Run());
    if (!options_.scripts_dir.empty() && !options_.scripts_by_node) {
      for (node::HealthReport& one : scripts_.Run("")) shared_.push_back(std::move(one));
    }
    shared_at_ = clock_.Steady();
    shared_known_ = true;
  }
  std::vector<node::HealthReport> reports = shared_;
  if (!options_.scripts_dir.empty() && options_.scripts_by_node) {
    for (node::HealthReport& one : scripts_.Run(node)) reports.push_back(std::move(one));
  }
  return reports;
}

void MachineHealth::Run() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (waiting_.empty()) {
      changed_.Wait(mutex_);
      continue;
    }
    Request request = std::move(waiting_.front());
    waiting_.pop_front();
    mutex_.Unlock();
    std::vector<node::HealthReport> reports = CheckNow(request.node);
    core_.Post([done = std::move(request.done), reports = std::move(reports)]() mutable {
      done(std::move(reports));
    });
    mutex_.Lock();
  }
}

}  // namespace swell::process
