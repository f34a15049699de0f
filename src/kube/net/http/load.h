// RunLoad: a closed-loop HTTP load generator for benchmarks and soak tests. Every connection sends
// its next request as soon as the last is answered.
// - Threads: runs the given reactor on the calling thread until the load is over.
#pragma once

#include <array>
#include <functional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "kube/net/http/http.h"
#include "kube/net/tls/tls.h"

namespace swell::net {

class Reactor;

// Counts by duration; each power of two of nanoseconds is cut in 16, so quantiles are within 7 %.
class LatencyHistogram {
 public:
  void Add(Duration latency);
  // The duration that a share `q` (0..1) of all samples did not exceed. Zero without samples.
  Duration Quantile(double q) const;
  Duration Max() const { return Duration(max_ns_); }
  uint64_t count() const { return count_; }

 private:
  static constexpr size_t kSub = 16;
  std::array<uint64_t, 64 * kSub> buckets_{};
  uint64_t count_ = 0;
  int64_t max_ns_ = 0;
};

struct LoadOptions {
  std::string base_url;
  TlsClientConfig tls;
  int connections = 16;
  bool connect = false;   // anew for each request
  uint64_t requests = 0;  // stop after this many; 0: by duration only
  Duration duration = std::chrono::seconds(10);
  int expected_status = 200;  // anything else counts as an error
  std::function<HttpRequest(uint64_t index)> make_request;
};

struct LoadReport {
  uint64_t requests = 0;  // answered as expected
  uint64_t errors = 0;
  uint64_t bytes = 0;  // of response bodies
  Duration elapsed{};
  LatencyHistogram latency;
  Status first_error;

  double RequestsPerSecond() const;
  // "31250 requests/s, 12.5 MB/s, p50 0.41 ms, p99 1.2 ms, max 5.0 ms, 0 errors"
  std::string ToString() const;
};

Result<LoadReport> RunLoad(Reactor& reactor, const LoadOptions& options);

}  // namespace swell::net
