// MonitorServer: a port for monitoring a process: GET /metrics, /healthz, /livez and /readyz.
//
// It is plain HTTP without authentication, so by default it listens on the loopback address.
// - Threads: the reactor's thread.
// - Ownership: reactor, clock, metrics and health outlive it.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/health.h"
#include "base/metrics.h"
#include "kube/net/http/server.h"
#include "kube/net/reactor/reactor.h"

namespace swell::edge {

class MonitorServer final : public net::Handler {
 public:
  MonitorServer(net::Reactor& reactor,
                const Clock& clock,
                const Metrics& metrics,
                const HealthChecks& health);
  ~MonitorServer() override;

  // "127.0.0.1:10290"; returns the port.
  Result<uint16_t> Listen(const std::string& address);

  void OnRequest(std::shared_ptr<net::Exchange> exchange) override;

 private:
  const Metrics& metrics_;
  const HealthChecks& health_;
  std::unique_ptr<net::HttpServer> http_;
};

}  // namespace swell::edge
