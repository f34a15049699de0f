#include "kube/net/http/load.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <memory>

#include "base/strings.h"
#include "kube/net/http/client.h"
#include "kube/net/reactor/reactor.h"

namespace swell::net {
namespace {

// The driver of one run; every connection is one request that begets the next.
class Load {
 public:
  Load(Reactor& reactor, const LoadOptions& options, HttpClient& client)
      : reactor_(reactor),
        options_(options),
        client_(client),
        end_(reactor.Now() + options.duration) {}

  void Start() {
    for (int i = 0; i < options_.connections; ++i) Next();
  }
  bool Done() const { return in_flight_ == 0; }
  LoadReport& report() { return report_; }

 private:
  void Next() {
    SteadyTime now = reactor_.Now();
    bool enough = options_.requests != 0 && sent_ >= options_.requests;
    if (enough || now >= end_) return;
    ++in_flight_;
    if (options_.connect) return Connect(now);
    client_.Send(
        options_.make_request(sent_++), Duration::zero(),
        [this, now](Result<HttpResponse> response) { OnResponse(now, std::move(response)); });
  }

  // Streams have connections of their own.
  void Connect(SteadyTime now) {
    auto answer = std::make_shared<HttpResponse>();
    client_.Stream(
        options_.make_request(sent_++),
        [answer](int status, const Headers&) { answer->status = status; },
        [answer](std::string_view data) { answer->body.push_back(MakeChunk(std::string(data))); },
        [this, now, answer](const Status& status) {
          OnResponse(now, status.ok() ? Result<HttpResponse>(std::move(*answer)) : status);
        });
  }

  void OnResponse(SteadyTime started, Result<HttpResponse> response) {
    --in_flight_;
    report_.latency.Add(reactor_.Now() - started);
    if (response.ok() && response->status == options_.expected_status) {
      ++report_.requests;
      report_.bytes += BodySize(response->body);
    } else {
      ++report_.errors;
      if (report_.first_error.ok()) {
        report_.first_error =
            response.ok() ? Status(Code::kInternal, StrCat("HTTP status ", response->status, ": ",
                                                           BodyText(response->body).substr(0, 200)))
                          : response.status();
      }
    }
    Next();
  }

  Reactor& reactor_;
  const LoadOptions& options_;
  HttpClient& client_;
  const SteadyTime end_;
  uint64_t sent_ = 0;
  int in_flight_ = 0;
  LoadReport report_;
};

}  // namespace

void LatencyHistogram::Add(Duration latency) {
  int64_t ns = std::max<int64_t>(latency.count(), 0);
  auto value = static_cast<uint64_t>(ns);
  int log = value < kSub ? 0 : std::bit_width(value) - 5;  // bits cut off so that 5 remain
  size_t index = static_cast<size_t>(log) * kSub + (value >> log);
  ++buckets_[std::min(index, buckets_.size() - 1)];
  ++count_;
  max_ns_ = std::max(max_ns_, ns);
}

Duration LatencyHistogram::Quantile(double q) const {
  if (count_ == 0) return Duration::zero();
  auto wanted = static_cast<uint64_t>(q * static_cast<double>(count_ - 1)) + 1;
  uint64_t seen = 0;
  for (size_t index = 0; index < buckets_.size(); ++index) {
    seen += buckets_[index];
    if (seen < wanted) continue;
    if (index < 2 * kSub) return Duration(index);
    size_t log = index / kSub - 1;
    int64_t upper = static_cast<int64_t>(((index - log * kSub) + 1) << log) - 1;
    return Duration(std::min(upper, max_ns_));
  }
  return Max();
}

double LoadReport::RequestsPerSecond() const {
  double seconds = std::chrono::duration<double>(elapsed).count();
  return seconds > 0 ? static_cast<double>(requests) / seconds : 0;
}

std::string LoadReport::ToString() const {
  auto ms = [](Duration d) { return std::chrono::duration<double, std::milli>(d).count(); };
  double seconds = std::max(std::chrono::duration<double>(elapsed).count(), 1e-9);
  char text[256];
  std::snprintf(text, sizeof(text),
                "%.0f requests/s, %.1f MB/s, p50 %.2f ms, p99 %.2f ms, max %.2f ms, %llu errors",
                RequestsPerSecond(), static_cast<double>(bytes) / seconds / 1e6,
                ms(latency.Quantile(0.5)), ms(latency.Quantile(0.99)), ms(latency.Max()),
                static_cast<unsigned long long>(errors));  // NOLINT(google-runtime-int): printf's
  return text;
}

Result<LoadReport> RunLoad(Reactor& reactor, const LoadOptions& options) {
  ClientConfig config;
  config.base_url = options.base_url;
  config.tls = options.tls;
  config.max_connections = static_cast<size_t>(std::max(options.connections, 1));
  config.max_streams = 2 * config.max_connections;  // some are still being closed
  SWELL_ASSIGN_OR_RETURN(std::unique_ptr<HttpClient> client,
                         HttpClient::Make(reactor, std::move(config)));
  Load load(reactor, options, *client);
  SteadyTime started = reactor.Now();
  load.Start();
  bool finished = reactor.RunUntil([&load] { return load.Done(); },
                                   options.duration + std::chrono::seconds(60));
  LoadReport report = load.report();
  report.elapsed = reactor.Now() - started;
  client = nullptr;  // its callbacks refer to `load`
  if (!finished) return Status(Code::kTimeout, "load: the server stopped answering");
  return report;
}

}  // namespace swell::net
