// Monitoring: what `swell controller` and `swell agent` tell of themselves, and where.
// - Threads: the core thread.
// - Ownership: the process outlives it.
#pragma once

#include <memory>
#include <string>

#include "base/health.h"
#include "base/metrics.h"
#include "kube/edge/http/monitor_server.h"
#include "ops/remote_process.h"

namespace swell::ops {

void AddMonitoringFlag(cli::Flags& flags, std::string& address, const std::string& usual);

class Monitoring {
 public:
  Monitoring();

  // `address` empty: the usual one, or, when somebody has it, any; "none": nowhere. The log says
  // where.
  Status Listen(RemoteProcess& process, const std::string& address, const std::string& usual);

  Metrics metrics;
  HealthChecks health;

 private:
  std::unique_ptr<Metrics::Registration> process_metrics_;
  std::unique_ptr<edge::MonitorServer> server_;
};

}  // namespace swell::ops
