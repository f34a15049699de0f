// Manager: every controller and the scheduler, made and started together. What `swell up`, `swell
// controller` and the simulation run.
//
// Ownership: the Context's parts outlive it. Thread-safety: core executor only.
#pragma once

#include <memory>
#include <string>

#include "api/scheme.h"
#include "controllers/context.h"
#include "controllers/scheduler_loop.h"

namespace swell::controllers {

struct ManagerOptions {
  // The kinds that garbage collection and namespace deletion look after. Null: neither runs (a
  // real cluster's own controller manager does both).
  const api::Scheme* scheme = nullptr;
  bool host_network = false;
  sched::Settings scheduler;
  // A node that is silent for this long is lost; its pods go after `eviction_delay` more, unless
  // they tolerate it for longer or shorter.
  Duration node_grace = std::chrono::seconds(40);
};

class Manager {
 public:
  Manager(Context context, ManagerOptions options);
  ~Manager();

  void Start();
  bool synced() const;
  const SchedulerLoop& scheduler() const;
  // For the embedded API server's bindings; see CapacityGuard.
  Status CheckBind(const json::Value& pod, const std::string& node) const;

 private:
  struct Parts;
  Context context_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace swell::controllers
