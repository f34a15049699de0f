// SimNetwork: the network between the processes of a simulated cluster. A Link connects one process
// to the API server. Its messages are delayed, overtake each other, or get lost.
//
//   network.faults = {.delay_max = milliseconds(200), .lost_percent = 3};
//   network.Cut("node-1", /*silent=*/true);   // nothing comes or goes, and nobody says so
//   network.Lag("replica-1", seconds(10));    // its watches are behind, its requests are not
//   network.Attach(nullptr);                  // the server is dead: every connection to it ends
//
// A request is lost on its way there (then nothing was done) or on the way back (then it was, and
// who asked cannot know): either way it is told 503, as HttpTransport does when a connection ends,
// or 504 after a minute where nothing comes at all. One that is late arrives when nobody waits for
// it any more. One that is sent twice, as HTTP clients do with what is safe to repeat when a
// connection was stale, is done twice. Chunks of a stream keep their order and may be cut anywhere;
// one that misses any is never heard again, and ends when the way is mended.
//
// - Threads: one thread.
// - Ownership: executor outlives it, it outlives calls and servers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/sim_executor.h"
#include "kube/api/rest/rest.h"

namespace swell::sim {

struct NetworkFaults {
  Duration delay_min = std::chrono::microseconds(50);
  Duration delay_max = std::chrono::microseconds(300);
  uint64_t lost_percent = 0;  // of requests, of answers, and of chunks, which then end the stream
  uint64_t mute_percent = 0;  // of the same, of which nobody is told that they are lost
  uint64_t late_percent = 0;  // of requests, which arrive up to `late_max` after they were given up
  Duration late_max = std::chrono::seconds(30);
  uint64_t twice_percent = 0;  // of PUT and DELETE
};

class SimNetwork {
 public:
  // Hears of every answer as the server gives it, before anything can happen to it. `number`: of
  // the request, in the order of asking.
  using Listener =
      std::function<void(uint64_t number, const api::RestRequest&, const api::RestResponse&)>;

  SimNetwork(SimExecutor& executor, uint64_t seed);
  ~SimNetwork();

  // The same way for the same name.
  std::shared_ptr<api::RestHandler> Link(const std::string& process);
  // Null: there is no server. Clients of the server before learn it at once or, when `silent`,
  // within half a minute. The server's calls are given up before this returns.
  void Attach(api::RestHandler* server, bool silent = false);
  void Cut(const std::string& process, bool silent);
  void Mend(const std::string& process);
  bool IsCut(const std::string& process) const { return cut_.contains(process); }
  // What streams say to it from now on comes up to so much later than answers do, each by its own
  // part of that, as from a server whose watch caches are behind. Zero: as fast as they.
  void Lag(const std::string& process, Duration lag) { lags_[process] = lag; }

  NetworkFaults faults;
  Listener on_answer;
  // Hears of every request as it is asked, before anything can happen to it.
  std::function<void(const std::string& process, const api::RestRequest&)> on_ask;

 private:
  struct Exchange;
  class Call;
  class Sink;
  class Way;
  using ExchangePtr = std::shared_ptr<Exchange>;

  ExchangePtr Open(const std::string& process,
                   api::RestRequest request,
                   std::shared_ptr<api::RestSink> sink);
  std::unique_ptr<api::RestCall> Send(const std::string& process,
                                      api::RestRequest request,
                                      std::shared_ptr<api::RestSink> sink);
  void Arrive(const ExchangePtr& exchange);
  // Runs `fn` when a message sent now arrives, unless it is lost, which breaks the exchange.
  void Deliver(const ExchangePtr& exchange, std::function<void()> fn, Duration lag = {});
  void Break(const ExchangePtr& exchange);
  void GiveUp(const ExchangePtr& exchange);
  void End(const ExchangePtr& exchange);
  void Fail(const ExchangePtr& exchange, int http_status);
  // Whether a message of it is swallowed here and now.
  bool Vanishes(Exchange& exchange) const;
  bool Happens(uint64_t percent) { return percent > 0 && random_.Below(100) < percent; }
  Duration Delay();

  SimExecutor& executor_;
  Random random_;
  api::RestHandler* server_ = nullptr;
  std::map<std::string, std::shared_ptr<api::RestHandler>> ways_;
  std::map<std::string, bool> cut_;  // process → silently
  std::map<std::string, Duration> lags_;
  std::vector<std::unique_ptr<api::RestCall>> given_up_;
  uint64_t next_ = 1;
  std::map<uint64_t, ExchangePtr> open_;
};

}  // namespace swell::sim
