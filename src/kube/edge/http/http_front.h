// HttpFront: puts a RestHandler behind an HttpServer.
//
//   HttpFront front(core, api_server, {});
//   HttpServer server(io_reactor, clock, front, {});
//   server.Listen("127.0.0.1:6443", tls);
//
// Requests arrive on the server's I/O thread, wait in a bounded queue, and run on the core executor
// in batches; answers go back from the core thread. No client can crowd out the others: a
// connection has one request under way at a time, the client that had the least of the core
// thread's time is next (base/fair_queue.h), and long answers are made in pieces, each of them a
// turn (kube/api/rest/sink_capabilities.h).
//
// Identity: a bearer token and the verified client certificate become the request's credentials;
// RestRequest::user is never set from the network.
//
// - Threads: OnRequest on any thread. Constructor, Close and destructor on the core thread, or
//   while nobody runs the core executor.
// - Ownership: the core executor and the handler outlive the front; the front outlives its server.
// - Invariants: a call's RestCall is destroyed on the core thread, when it is answered, when its
//   client goes away, or at Close.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "base/executor.h"
#include "kube/api/rest/rest.h"
#include "kube/net/http/server.h"

namespace swell::edge {

struct HttpFrontConfig {
  size_t in_flight_max = 20'000;  // requests and open streams together; more get 429
  size_t queued_max = 4096;       // requests waiting for the core thread; more get 429
  // One client gets at most 1/client_part of either.
  size_t client_part = 2;
  // Turns of requests, and their time, before other work of the core gets its own.
  size_t batch_max = 64;
  Duration batch_for = std::chrono::milliseconds(1);
};

// Counters for metrics; readable from any thread.
struct HttpFrontStats {
  std::atomic<uint64_t> requests{0};
  std::atomic<uint64_t> refused{0};  // answered 429 here
  std::atomic<uint64_t> in_flight{0};
  std::atomic<uint64_t> refused_clients{0};  // of these: since the client had its part
  std::atomic<uint64_t> abandoned{0};        // the client went away before the answer was complete
};

class HttpFront final : public net::Handler {
 public:
  HttpFront(Executor& core, api::RestHandler& rest, HttpFrontConfig config);
  ~HttpFront() override;

  void OnRequest(std::shared_ptr<net::Exchange> exchange) override;

  // Cancels every call; later requests get 503.
  void Close();
  const HttpFrontStats& stats() const;

 private:
  class State;
  class Sink;
  std::shared_ptr<State> state_;
};

}  // namespace swell::edge
