// HttpServer: HTTP/1.1 over TCP, TLS and unix sockets, on one Reactor.
//
//   class Hello : public Handler {
//     void OnRequest(std::shared_ptr<Exchange> exchange) override {
//       exchange->Respond({200, {}, {MakeChunk("hello")}});
//     }
//   };
//   HttpServer server(reactor, clock, hello, {});
//   auto port = server.Listen("127.0.0.1:0");
//
// The handler is called on the reactor's thread and must not block; it usually hands the exchange
// to another executor, which answers from there. Requests of one connection are handled one after
// the other, so pipelined answers keep their order.
//
// - Threads: HttpServer on the reactor's thread; Exchange from any thread.
// - Ownership: handler, clock and reactor outlive the server. Exchanges may outlive it: they are
//   then gone. Executors given to OnClose and OnDrained outlive the exchange.
// - Invariants: everything a peer can make grow is bounded by ServerConfig.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/executor.h"
#include "kube/net/connection/byte_stream.h"
#include "kube/net/http/http.h"
#include "kube/net/tls/tls.h"

namespace swell::net {

class ExchangeState;
class Reactor;
class ServerImpl;

struct ServerConfig {
  size_t header_bytes = 64 << 10;
  size_t body_bytes = 3 << 20;  // larger requests get 413
  // What has come of all requests that are not complete. For more, the request that has been coming
  // longest is cut, from the address with the most.
  size_t coming_bytes = 256 << 20;
  size_t stream_buffer_bytes = 4 << 20;  // per streaming peer; overflow ends that peer
  // At most half of the descriptors that the process may have open. To accept one more, the server
  // closes the connection that has waited longest for a request. If none waits, it answers 503.
  size_t max_connections = 8192;
  size_t address_part = 2;  // one address has at most 1 / address_part of the connections
  Duration header_timeout = std::chrono::seconds(20);       // first byte to end of head
  Duration body_timeout = std::chrono::seconds(60);         // end of head to end of body
  Duration idle_timeout = std::chrono::minutes(3);          // between requests
  Duration write_stall_timeout = std::chrono::seconds(30);  // peer reads nothing
  // Answers that all peers together have not read yet. While there are more, peers that read
  // nothing are cut after the second time.
  size_t unread_bytes = size_t{1} << 30;
  Duration crowded_stall_timeout = std::chrono::seconds(2);
  Duration upgraded_stall_timeout = std::chrono::hours(4);  // a person may look at a paused pager
  Duration tls_handshake_timeout = std::chrono::seconds(10);
  Duration linger_timeout = std::chrono::seconds(1);  // for the peer to read our last words
};

// Counters for metrics; readable from any thread.
struct ServerStats {
  std::atomic<uint64_t> connections_accepted{0};
  std::atomic<uint64_t> connections_open{0};
  std::atomic<uint64_t> connections_refused{0};
  std::atomic<uint64_t> requests{0};
  std::atomic<uint64_t> bad_requests{0};
  std::atomic<uint64_t> timeouts{0};
  std::atomic<uint64_t> overflows{0};
};

// One request and its answer. Dropped without an answer, it answers 500 by itself; a stream
// dropped before EndStream is cut, so that the peer sees it is incomplete.
class Exchange {
 public:
  explicit Exchange(std::shared_ptr<ExchangeState> state);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  const HttpRequest& request() const;
  // The handler may take the body out instead of copying it. One thread at a time.
  HttpRequest& mutable_request();

  // The whole answer. Call once, instead of StartStream and Upgrade.
  void Respond(HttpResponse response);

  // An answer in pieces of unknown total length. False when the peer is gone.
  bool StartStream(int status, Headers headers);
  // False when the peer is gone, or when it reads so slowly that its buffer would overflow; the
  // peer is then cut off. One chunk of any size is accepted while less than half of it is in use.
  bool Write(Chunk chunk);
  void EndStream();
  // Cuts the connection without completing the answer.
  void Abort();

  // Bytes accepted by Write and not yet given to the kernel.
  size_t queued_bytes() const;
  // Whether one chunk of any size is accepted now: less than half of the buffer is in use.
  bool HasRoom() const;
  // Runs once, when less than half of the buffer is in use: now, or when the peer has read enough.
  // Never runs when the peer goes away first.
  void OnDrained(std::function<void()> callback, Executor& executor);
  // Runs once if the peer goes away before the answer is complete (at once if it already has).
  void OnClose(std::function<void()> callback, Executor& executor);
  bool gone() const;

  // Answers 101 with these headers and takes the connection over.
  std::shared_ptr<ByteStream> Upgrade(Headers headers);

 private:
  std::shared_ptr<ExchangeState> state_;
};

class Handler {
 public:
  virtual ~Handler() = default;
  virtual void OnRequest(std::shared_ptr<Exchange> exchange) = 0;
};

class HttpServer {
 public:
  HttpServer(Reactor& reactor, const Clock& clock, Handler& handler, ServerConfig config);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // "127.0.0.1:0", "[::1]:6443", ":6443" (every interface) or "unix:/run/swell.sock" (mode 0600; a
  // socket nobody listens on is replaced). Returns the port, 0 for unix. May be called repeatedly.
  Result<uint16_t> Listen(const std::string& address,
                          const std::optional<TlsServerConfig>& tls = std::nullopt);

  // Stops accepting, closes idle connections, lets requests in flight finish for at most `grace`,
  // then cuts the rest and calls `done`.
  void Shutdown(Duration grace, std::function<void()> done);

  const ServerStats& stats() const;

 private:
  std::shared_ptr<ServerImpl> impl_;
};

}  // namespace swell::net
