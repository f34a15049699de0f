#include "kube/edge/webhook/webhook_server.h"

#include "base/strings.h"

namespace swell::edge {
namespace {

// An object is at most 3 MiB, and an update has two.
net::ServerConfig ReviewServer() {
  net::ServerConfig config;
  config.max_connections = 256;
  config.body_bytes = 8 << 20;
  return config;
}

}  // namespace

WebhookServer::WebhookServer(net::Reactor& reactor, const Clock& clock, Answer answer)
    : answer_(std::move(answer)),
      http_(std::make_unique<net::HttpServer>(reactor, clock, *this, ReviewServer())) {}

WebhookServer::~WebhookServer() = default;

Result<uint16_t> WebhookServer::Listen(const std::string& address,
                                       const net::TlsServerConfig& tls) {
  return http_->Listen(address, tls);
}

void WebhookServer::OnRequest(std::shared_ptr<net::Exchange> exchange) {
  const net::HttpRequest& request = exchange->request();
  if (request.path == "/healthz") return exchange->Respond({200, {}, {net::MakeChunk("ok")}});
  if (request.path != "/admit") {
    return exchange->Respond(
        net::StatusResponse(Status(Code::kNotFound, StrCat("there is no ", request.path))));
  }
  if (request.method != "POST") {
    return exchange->Respond(net::StatusResponse(
        Status(Code::kMethodNotAllowed, StrCat(request.method, " is not POST"))));
  }
  auto review = json::Parse(request.body, {.depth = 128, .bytes = 8 << 20});
  if (review.ok() && json::Find(*review, {"request", "uid"}) == nullptr) {
    review = Status(Code::kBadRequest, "expected an AdmissionReview with a request");
  }
  if (!review.ok()) return exchange->Respond(net::StatusResponse(review.status()));
  exchange->Respond({200,
                     {{"Content-Type", "application/json"}},
                     {net::MakeChunk(json::Print(answer_(*review)))}});
}

}  // namespace swell::edge
