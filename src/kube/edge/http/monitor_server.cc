#include "kube/edge/http/monitor_server.h"

#include "base/strings.h"

namespace swell::edge {
namespace {

// A scraper or two, and the probes of a kubelet.
net::ServerConfig SmallServer() {
  net::ServerConfig config;
  config.max_connections = 64;
  config.body_bytes = 1 << 10;
  config.header_bytes = 16 << 10;
  return config;
}

net::HttpResponse Text(int status, std::string text, std::string_view type) {
  return {status,
          {{"Content-Type", std::string(type)}, {"X-Content-Type-Options", "nosniff"}},
          {net::MakeChunk(std::move(text))}};
}

}  // namespace

MonitorServer::MonitorServer(net::Reactor& reactor,
                             const Clock& clock,
                             const Metrics& metrics,
                             const HealthChecks& health)
    : metrics_(metrics),
      health_(health),
      http_(std::make_unique<net::HttpServer>(reactor, clock, *this, SmallServer())) {}

MonitorServer::~MonitorServer() = default;

Result<uint16_t> MonitorServer::Listen(const std::string& address) {
  return http_->Listen(address);
}

void MonitorServer::OnRequest(std::shared_ptr<net::Exchange> exchange) {
  constexpr std::string_view kPlain = "text/plain; charset=utf-8";
  const net::HttpRequest& request = exchange->request();
  if (request.method != "GET" && request.method != "HEAD") {
    auto refused = Text(405, StrCat(request.method, " is not GET\n"), kPlain);
    refused.headers.push_back({"Allow", "GET, HEAD"});
    return exchange->Respond(std::move(refused));
  }
  if (request.path == "/metrics") {
    return exchange->Respond(Text(200, metrics_.Print(), kMetricsContentType));
  }
  HealthChecks::Answer answer = health_.Ask(request.path, request.query);
  if (answer.status == 404) {
    answer.text = "there are /metrics, /healthz, /livez and /readyz\n";
  }
  exchange->Respond(Text(answer.status, std::move(answer.text), kPlain));
}

}  // namespace swell::edge
