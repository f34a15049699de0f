// HttpClient: HTTP/1.1 to one server, with a pool of kept-alive connections, on one Reactor.
// - Threads: the reactor's thread only; callbacks run there, never from inside Send, Stream or
//   Upgrade. After Cancel returns, none of that request's callbacks runs.
// - Ownership: the reactor outlives the client; destroying the client cancels everything. Errors:
//   kUnavailable when the server cannot be reached or breaks off, kTimeout when the deadline
//   passes, kBadRequest for a URL or header that cannot be sent, kTooLarge for an answer over the
//   limit. An HTTP error status is a response, not an error. Redirects are not followed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "kube/net/connection/byte_stream.h"
#include "kube/net/http/http.h"
#include "kube/net/tls/tls.h"

namespace swell::net {

class ClientImpl;
class Reactor;

struct ClientConfig {
  std::string base_url;  // http://…, https://… or unix:///…; a path is put before every target
  TlsClientConfig tls;
  Headers default_headers;      // sent unless the request has its own of that name
  size_t max_connections = 32;  // for Send; streams and upgrades have their own
  size_t max_streams = 4096;
  size_t max_waiting = 10'000;          // requests waiting for a connection
  size_t max_response_bytes = 1 << 30;  // of one Send
  size_t stream_buffer_bytes = 4 << 20;
  Duration connect_timeout = std::chrono::seconds(10);      // look-up, connect and TLS handshake
  Duration header_timeout = std::chrono::seconds(60);       // of streams and upgrades
  Duration upgraded_stall_timeout = std::chrono::hours(4);  // the server takes nothing
  Duration idle_timeout = std::chrono::seconds(90);         // pooled connections
};

using RequestId = uint64_t;

class HttpClient {
 public:
  static Result<std::unique_ptr<HttpClient>> Make(Reactor& reactor, ClientConfig config);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  using ResponseCallback = std::function<void(Result<HttpResponse>)>;
  using HeadCallback = std::function<void(int status, const Headers& headers)>;
  using DataCallback = std::function<void(std::string_view)>;
  using EndCallback = std::function<void(Status)>;
  // The 101 answer's headers and the connection, or the answer of a server that refused.
  struct UpgradeResult {
    HttpResponse response;
    std::shared_ptr<ByteStream> stream;  // null when refused
  };
  using UpgradeCallback = std::function<void(Result<UpgradeResult>)>;

  // `target` ("/api/v1/pods?limit=5") is taken from request.target, or from path and query when
  // that is empty. The deadline counts from when the request has a connection; zero means none. A
  // request of an idempotent method that meets a connection the server has just closed is sent once
  // more.
  RequestId Send(HttpRequest request, Duration deadline, ResponseCallback done);
  // An answer as it comes: watches, followed logs. `on_end` is OK when the server completed it.
  RequestId Stream(HttpRequest request,
                   HeadCallback on_head,
                   DataCallback on_data,
                   EndCallback on_end);
  // The request must carry the Upgrade header; Connection is added.
  RequestId Upgrade(HttpRequest request, UpgradeCallback done);
  // After the last callback it is a no-op.
  void Cancel(RequestId id);

  // Replaces a default header, for tokens that rotate.
  void SetDefaultHeader(const std::string& name, const std::string& value);

 private:
  explicit HttpClient(std::shared_ptr<ClientImpl> impl);
  std::shared_ptr<ClientImpl> impl_;
};

}  // namespace swell::net
