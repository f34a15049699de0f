// HttpTransport: a RestHandler that asks a real API server over HTTP(S): the remote twin of the
// embedded server, so clients, informers and commands do not know which one they talk to.
//
// Watches, followed logs (watch=1, follow=1) and upgrades get a connection of their own; everything
// else shares a pool of kept-alive connections. Destroying a RestCall gives its request up.
//
// Errors of the connection itself arrive as an ordinary answer: metav1.Status with HTTP 503 (or 504
// for a deadline) whose one cause has the reason kUnreachable, so that a command can tell "the
// server says no" from "there is no server".
//
// - Threads: the reactor's thread.
// - Ownership: the reactor outlives the transport; calls may outlive it, their sinks are then not
//   called any more.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "kube/api/rest/rest.h"
#include "kube/client/kubeconfig.h"
#include "kube/net/http/client.h"
#include "kube/net/reactor/reactor.h"

namespace swell::edge {

inline constexpr std::string_view kUnreachable = "ClusterUnreachable";

struct HttpTransportConfig {
  net::ClientConfig client;
  std::string bearer_token;
  // Requests act as their callers: each carries the bearer token of its own credentials, and one
  // without a token is answered 401. No credentials of this process are ever sent.
  bool as_caller = false;
  Duration request_timeout = std::chrono::seconds(60);  // of plain requests; zero: none
};
HttpTransportConfig TransportConfig(const client::ClusterAccess& access);
// The same cluster with the callers' credentials, and none of `access`.
HttpTransportConfig CallersConfig(const client::ClusterAccess& access);

class HttpTransport final : public api::RestHandler {
 public:
  static Result<std::unique_ptr<HttpTransport>> Make(net::Reactor& reactor,
                                                     HttpTransportConfig config);
  ~HttpTransport() override;

  [[nodiscard]] std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                                      std::shared_ptr<api::RestSink> sink) override;

  // For tokens that rotate.
  void SetBearerToken(const std::string& token);

 private:
  class Call;
  HttpTransport(net::Reactor& reactor,
                std::unique_ptr<net::HttpClient> client,
                HttpTransportConfig config);
  void Upgrade(api::RestRequest request,
               const std::shared_ptr<net::RequestId>& id,
               std::shared_ptr<api::RestSink> sink);

  net::Reactor& reactor_;
  std::shared_ptr<net::HttpClient> client_;
  std::string server_;
  Duration request_timeout_;
  const bool as_caller_;
};

// Whether an error of a client means that nobody answered.
bool IsUnreachable(const Status& status);

}  // namespace swell::edge
