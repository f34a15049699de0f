// swell_master_load: the workers of one job, asking a running `swell job-master`; prints one JSON
// line.
//
//   swell_master_load URL WORKERS SECONDS COUNT PAUSE_MS
//
// Each worker asks for COUNT ranges at a time, says with the next request that they are done, and
// pauses between requests (0: not at all). Latencies are those of the requests.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/strings.h"
#include "json/value.h"
#include "kube/net/http/client.h"
#include "kube/net/http/load.h"
#include "kube/net/reactor/reactor.h"

namespace swell {
namespace {

struct Options {
  std::string url;
  int workers = 1;
  int64_t seconds = 1;
  int64_t count = 1;
  int64_t pause_ms = 0;
};

class Workers {
 public:
  Workers(net::Reactor& reactor, const Options& options, net::HttpClient& client)
      : reactor_(reactor), options_(options), client_(client), done_(options.workers) {}

  void Start() {
    end_ = reactor_.Now() + std::chrono::seconds(options_.seconds);
    Random random(1);
    for (int i = 0; i < options_.workers; ++i) {
      // Not all in the same moment.
      const auto wait = std::chrono::microseconds(
          options_.pause_ms == 0 ? 0 : random.Below(uint64_t(options_.pause_ms) * 1000));
      ++open_;
      reactor_.After(wait, [this, i] { Ask(i); });
    }
  }
  bool over() const { return open_ == 0; }
  int64_t ranges() const { return ranges_; }
  int64_t errors() const { return errors_; }
  const net::LatencyHistogram& latency() const { return latency_; }

 private:
  void Ask(int worker) {
    const SteadyTime now = reactor_.Now();
    if (now >= end_) {
      --open_;
      return;
    }
    net::HttpRequest request;
    request.method = "POST";
    request.target = "/v1/task";
    request.headers = {{"Content-Type", "application/json"}};
    request.body = StrCat(R"({"worker":"worker-)", worker, R"(","count":)", options_.count,
                          R"(,"completed":[)", done_[static_cast<size_t>(worker)], "]}");
    client_.Send(std::move(request), Duration::zero(),
                 [this, worker, now](const Result<net::HttpResponse>& response) {
                   latency_.Add(reactor_.Now() - now);
                   Answered(worker, response);
                   reactor_.After(std::chrono::milliseconds(options_.pause_ms),
                                  [this, worker] { Ask(worker); });
                 });
  }

  void Answered(int worker, const Result<net::HttpResponse>& response) {
    std::string& done = done_[static_cast<size_t>(worker)];
    done.clear();
    auto answer = response.ok() && response->status == 200
                      ? json::Parse(net::BodyText(response->body))
                      : Result<json::Value>(Status(Code::kInternal, "no answer"));
    if (!answer.ok() || json::GetArray(*answer, {"tasks"}).empty()) {
      ++errors_;
      return;
    }
    for (const json::Value& task : json::GetArray(*answer, {"tasks"})) {
      done += StrCat(done.empty() ? "" : ",", json::GetInt(task, {"id"}));
      ++ranges_;
    }
  }

  net::Reactor& reactor_;
  const Options& options_;
  net::HttpClient& client_;
  SteadyTime end_;
  int open_ = 0;
  std::vector<std::string> done_;
  int64_t ranges_ = 0;
  int64_t errors_ = 0;
  net::LatencyHistogram latency_;
};

int Run(const Options& options) {
  net::Reactor reactor;
  auto client = net::HttpClient::Make(
      reactor, {.base_url = options.url, .max_connections = size_t(options.workers)});
  if (!client.ok()) return 1;
  Workers workers(reactor, options, **client);
  workers.Start();
  reactor.RunUntil([&] { return workers.over(); }, std::chrono::seconds(options.seconds + 30));
  auto ms = [&](double q) { return double(workers.latency().Quantile(q).count()) / 1e6; };
  std::printf(R"({"per_second": %.1f, "requests": %llu, "p50_ms": %.3f, "p99_ms": %.3f, )"
              R"("errors": %lld})"
              "\n",
              double(workers.ranges()) / double(options.seconds),
              static_cast<unsigned long long>(workers.latency().count()), ms(0.5), ms(0.99),
              static_cast<long long>(workers.errors()));
  return workers.errors() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace swell

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "swell_master_load URL WORKERS SECONDS COUNT PAUSE_MS\n");
    return 2;
  }
  return swell::Run({.url = argv[1],
                     .workers = std::atoi(argv[2]),
                     .seconds = std::atoll(argv[3]),
                     .count = std::atoll(argv[4]),
                     .pause_ms = std::atoll(argv[5])});
}
