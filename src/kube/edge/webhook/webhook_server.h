// WebhookServer: the HTTPS port of an admission webhook, called by a cluster's API server: POST
// /admit with an AdmissionReview, answered by a function; GET /healthz.
// - Threads: the reactor's thread.
// - Ownership: reactor and clock outlive it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "json/value.h"
#include "kube/net/http/server.h"
#include "kube/net/reactor/reactor.h"

namespace swell::edge {

class WebhookServer final : public net::Handler {
 public:
  // An AdmissionReview with its response.
  using Answer = std::function<json::Value(const json::Value& review)>;

  WebhookServer(net::Reactor& reactor, const Clock& clock, Answer answer);
  ~WebhookServer() override;

  // "0.0.0.0:9443"; returns the port.
  Result<uint16_t> Listen(const std::string& address, const net::TlsServerConfig& tls);

  void OnRequest(std::shared_ptr<net::Exchange> exchange) override;

 private:
  Answer answer_;
  std::unique_ptr<net::HttpServer> http_;
};

}  // namespace swell::edge
