#include "kube/edge/http/http_transport.h"

#include <utility>

#include "base/strings.h"
#include "json/value.h"
#include "kube/edge/http/net_duplex.h"

namespace swell::edge {
namespace {

std::string Bearer(const std::string& token) { return StrCat("Bearer ", token); }

// Followed answers never end by themselves, so they must not hold a pooled connection.
bool IsStreaming(std::string_view query) {
  for (std::string_view param : Split(query, '&')) {
    for (std::string_view name : {"watch=", "follow="}) {
      if (!param.starts_with(name)) continue;
      std::string_view value = param.substr(name.size());
      if (value == "1" || value == "true" || value == "True") return true;
    }
  }
  return false;
}

// These describe one connection or one encoding of the bytes, not the answer.
bool DescribesConnection(std::string_view name) {
  for (std::string_view hop : {"Connection", "Keep-Alive", "Transfer-Encoding", "Content-Length",
                               "Content-Type", "Upgrade", "Trailer"}) {
    if (net::EqualsIgnoreCase(name, hop)) return true;
  }
  return false;
}

std::string ContentType(const net::Headers& headers) {
  const std::string* value = net::FindHeader(headers, "Content-Type");
  return value ? *value : std::string();
}

api::RestResponse ErrorResponse(const Status& error, std::string_view server) {
  api::RestResponse response;
  response.status = HttpStatus(error.code());
  // Most errors name the request already, URL and all.
  bool named = error.message().find(server) != std::string::npos;
  std::string message = named ? error.message() : StrCat(server, ": ", error.message());
  json::Value body = json::Object{
      {"kind", "Status"},
      {"apiVersion", "v1"},
      {"metadata", json::Object{}},
      {"status", "Failure"},
      {"message", message},
      {"reason", Reason(error.code())},
      {"details", json::Object{{"causes", json::Array{json::Object{{"reason", kUnreachable},
                                                                   {"message", message}}}}}},
      {"code", response.status}};
  response.body.push_back(api::MakeChunk(json::Print(body)));
  return response;
}

api::RestResponse Refusal(const Status& why) {
  net::HttpResponse http = net::StatusResponse(why);
  api::RestResponse response;
  response.status = http.status;
  response.body = std::move(http.body);
  return response;
}

api::RestResponse ToRest(net::HttpResponse http) {
  api::RestResponse response;
  response.status = http.status;
  response.content_type = ContentType(http.headers);
  for (net::Header& header : http.headers) {
    if (DescribesConnection(header.name)) continue;
    response.headers.emplace_back(std::move(header.name), std::move(header.value));
  }
  response.body = std::move(http.body);
  return response;
}

net::HttpRequest ToHttp(api::RestRequest rest, bool as_caller) {
  net::HttpRequest http;
  http.method = std::move(rest.method);
  http.path = std::move(rest.path);
  http.query = std::move(rest.query);
  http.headers.push_back({"Accept", rest.accept.empty() ? "application/json" : rest.accept});
  if (!rest.body.empty()) {
    http.headers.push_back(
        {"Content-Type", rest.content_type.empty() ? "application/json" : rest.content_type});
  }
  if (!rest.user_agent.empty()) http.headers.push_back({"User-Agent", rest.user_agent});
  for (auto& [name, value] : rest.upgrade) {
    http.headers.push_back({std::move(name), std::move(value)});
  }
  if (as_caller) {
    http.headers.push_back({"Authorization", Bearer(rest.credentials.bearer_token)});
  }
  http.body = std::move(rest.body);
  http.urgent = rest.urgent;
  return http;
}

}  // namespace

HttpTransportConfig TransportConfig(const client::ClusterAccess& access) {
  HttpTransportConfig config;
  config.client.base_url = access.server;
  config.client.tls.ca_pem = access.ca_pem;
  config.client.tls.cert_pem = access.client_cert_pem;
  config.client.tls.key_pem = access.client_key_pem;
  config.client.tls.insecure_skip_verify = access.insecure_skip_tls_verify;
  config.client.tls.server_name = access.tls_server_name;
  config.bearer_token = access.token;
  return config;
}

HttpTransportConfig CallersConfig(const client::ClusterAccess& access) {
  HttpTransportConfig config = TransportConfig(access);
  config.client.tls.cert_pem.clear();
  config.client.tls.key_pem.clear();
  config.bearer_token.clear();
  config.as_caller = true;
  return config;
}

bool IsUnreachable(const Status& status) {
  for (const StatusCause& cause : status.details().causes) {
    if (cause.reason == kUnreachable) return true;
  }
  return false;
}

// Cancels its request when destroyed; knows when there is nothing left to cancel.
class HttpTransport::Call final : public api::RestCall {
 public:
  explicit Call(std::weak_ptr<net::HttpClient> client) : client_(std::move(client)) {}
  ~Call() override { Give(); }

  void Give() {
    if (auto client = client_.lock(); client && *id_ != 0) client->Cancel(std::exchange(*id_, 0));
  }
  // Zero when the request is over.
  std::shared_ptr<net::RequestId> id() const { return id_; }

 private:
  std::weak_ptr<net::HttpClient> client_;
  std::shared_ptr<net::RequestId> id_ = std::make_shared<net::RequestId>(0);
};

Result<std::unique_ptr<HttpTransport>> HttpTransport::Make(net::Reactor& reactor,
                                                           HttpTransportConfig config) {
  if (!config.bearer_token.empty()) {
    config.client.default_headers.push_back({"Authorization", Bearer(config.bearer_token)});
  }
  SWELL_ASSIGN_OR_RETURN(auto client, net::HttpClient::Make(reactor, config.client));
  return std::unique_ptr<HttpTransport>(
      new HttpTransport(reactor, std::move(client), std::move(config)));
}

HttpTransport::HttpTransport(net::Reactor& reactor,
                             std::unique_ptr<net::HttpClient> client,
                             HttpTransportConfig config)
    : reactor_(reactor),
      client_(std::move(client)),
      server_(config.client.base_url),
      request_timeout_(config.request_timeout),
      as_caller_(config.as_caller) {}

HttpTransport::~HttpTransport() = default;

void HttpTransport::SetBearerToken(const std::string& token) {
  client_->SetDefaultHeader("Authorization", Bearer(token));
}

// The server's 101 becomes the receiver's; anything else is an answer like others.
void HttpTransport::Upgrade(api::RestRequest request,
                            const std::shared_ptr<net::RequestId>& id,
                            std::shared_ptr<api::RestSink> sink) {
  auto done = [id, sink = std::move(sink), server = server_,
               reactor = &reactor_](Result<net::HttpClient::UpgradeResult> result) {
    *id = 0;
    if (!result.ok()) return sink->OnResponse(ErrorResponse(result.status(), server));
    if (result->stream == nullptr) return sink->OnResponse(ToRest(std::move(result->response)));
    api::HeaderList headers;
    for (net::Header& header : result->response.headers) {
      if (net::EqualsIgnoreCase(header.name, "Connection")) continue;
      headers.emplace_back(std::move(header.name), std::move(header.value));
    }
    auto remote = MakeNetDuplex(*reactor, std::move(result->stream));
    if (auto ours = sink->OnUpgrade(std::move(headers))) return api::Splice(ours, remote);
    sink->OnResponse(ErrorResponse(
        Status(Code::kInternal, "the receiver of an upgraded connection carries no streams"),
        server));
  };
  *id = client_->Upgrade(ToHttp(std::move(request), as_caller_), std::move(done));
}

std::unique_ptr<api::RestCall> HttpTransport::Handle(api::RestRequest request,
                                                     std::shared_ptr<api::RestSink> sink) {
  auto call = std::make_unique<Call>(client_);
  auto id = call->id();
  if (as_caller_ && request.credentials.bearer_token.empty()) {
    sink->OnResponse(Refusal(Status(Code::kUnauthorized, "expected a bearer token")));
    return call;
  }
  if (!request.upgrade.empty()) {
    Upgrade(std::move(request), id, std::move(sink));
    return call;
  }
  if (!IsStreaming(request.query)) {
    *id = client_->Send(ToHttp(std::move(request), as_caller_), request_timeout_,
                        [id, sink, server = server_](Result<net::HttpResponse> result) {
                          *id = 0;
                          sink->OnResponse(result.ok() ? ToRest(std::move(*result))
                                                       : ErrorResponse(result.status(), server));
                        });
    return call;
  }
  auto started = std::make_shared<bool>(false);
  *id = client_->Stream(
      ToHttp(std::move(request), as_caller_),
      [sink, started](int status, const net::Headers& headers) {
        *started = true;
        sink->OnStreamStart(status, ContentType(headers));
      },
      [sink, id, client = std::weak_ptr(client_)](std::string_view bytes) {
        if (*id == 0 || sink->OnChunk(api::MakeChunk(std::string(bytes)))) return;
        auto receiver = sink;  // Cancel may destroy this closure
        if (auto alive = client.lock(); alive && *id != 0) alive->Cancel(std::exchange(*id, 0));
        receiver->OnStreamEnd(
            Status(Code::kUnavailable, "the receiver took no more of the stream"));
      },
      [sink, id, started, server = server_](const Status& why) {
        *id = 0;
        if (*started) return sink->OnStreamEnd(why);
        sink->OnResponse(ErrorResponse(why, server));
      });
  return call;
}

}  // namespace swell::edge
