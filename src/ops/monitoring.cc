#include "ops/monitoring.h"

#include "base/host_port.h"
#include "base/log.h"
#include "base/strings.h"
#include "cli/cli.h"

namespace swell::ops {

void AddMonitoringFlag(cli::Flags& flags, std::string& address, const std::string& usual) {
  flags.Text(
      "--metrics-address", &address, "HOST:PORT",
      StrCat("address of /metrics, /healthz, /livez and /readyz, without authentication (default ",
             usual, "); none turns it off"));
}

Monitoring::Monitoring()
    : process_metrics_(
          metrics.Register([](MetricPage& page) { AddProcessMetrics(page, cli::Version()); })) {}

Status Monitoring::Listen(RemoteProcess& process,
                          const std::string& address,
                          const std::string& usual) {
  if (address == "none") return Status::Ok();
  server_ = std::make_unique<edge::MonitorServer>(process.core(), process.clock(), metrics, health);
  auto port = server_->Listen(address.empty() ? usual : address);
  if (!port.ok() && !address.empty()) return port.status().WithContext("--metrics-address");
  // Two of them on one machine must both start.
  if (!port.ok()) port = server_->Listen("127.0.0.1:0");
  if (!port.ok()) return port.status().WithContext("metrics");
  const std::string& host = address.empty() ? usual : address;
  SWELL_LOG_INFO("metrics", "listening", {"address", StrCat(WithoutPort(host), ":", *port)});
  return Status::Ok();
}

}  // namespace swell::ops
