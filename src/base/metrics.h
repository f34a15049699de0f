// Metrics: what the process counts and measures, as Prometheus scrapes it.
//
// A component registers a collector, which is called at every scrape: numbers that exist anyway
// (lengths of queues, shares, sizes) cost nothing between two scrapes. Counters and histograms
// belong to the component that counts, as CounterVec and HistogramVec do.
//
//   CounterVec requests({"apiserver_requests_total", MetricType::kCounter, "Requests.",
//                        {"verb", "code"}});
//   ++requests.At({"GET", "200"});
//   auto registered = metrics.Register([&](MetricPage& page) { page.Add(requests); });
//
// - Threads: the core thread; numbers of other threads are read from their atomics.
// - Ownership: a collector is forgotten when its registration is destroyed, before what it reads.
// - Invariants: a family has at most kSeriesMax series: what comes beyond is counted together under
//   the label values "(other)".
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace swell {

enum class MetricType { kCounter, kGauge, kHistogram };

// What a metric is called and means; a constant, mostly.
struct MetricFamily {
  std::string_view name;
  MetricType type = MetricType::kGauge;
  std::string_view help;
  std::vector<std::string_view> labels = {};
};

using LabelValues = std::vector<std::string_view>;  // in the order of the family's labels

class Histogram {
 public:
  // Upper bounds, ascending, without infinity; they outlive the histogram.
  explicit Histogram(const std::vector<double>& bounds)
      : bounds_(&bounds), counts_(bounds.size() + 1) {}
  void Observe(double value);

  const std::vector<double>& bounds() const { return *bounds_; }
  const std::vector<uint64_t>& counts() const { return counts_; }  // the last: above all bounds
  double sum() const { return sum_; }

 private:
  const std::vector<double>* bounds_;
  std::vector<uint64_t> counts_;
  double sum_ = 0;
};

// From half a millisecond to a minute: what answers and cycles take.
const std::vector<double>& LatencyBounds();
// From a second to a week: how long jobs wait.
const std::vector<double>& WaitBounds();

// Series of one family by their label values.
template <class T>
class SeriesMap {
 public:
  static constexpr size_t kSeriesMax = 4000;

  SeriesMap(MetricFamily family, T fresh) : family_(std::move(family)), fresh_(std::move(fresh)) {}

  T& At(const LabelValues& values) {
    std::string& key = Key(values);
    auto found = series_.find(key);
    if (found != series_.end()) return found->second;
    if (series_.size() >= kSeriesMax) {
      Key(LabelValues(family_.labels.size(), "(other)"));
    }
    return series_.emplace(key, fresh_).first->second;
  }

  const MetricFamily& family() const { return family_; }
  // By label values, each ended by a zero byte.
  const std::map<std::string, T, std::less<>>& series() const { return series_; }

 private:
  std::string& Key(const LabelValues& values) {
    key_.clear();
    for (std::string_view value : values) {
      key_ += value;
      key_ += '\0';
    }
    return key_;
  }

  MetricFamily family_;
  T fresh_;
  std::map<std::string, T, std::less<>> series_;
  std::string key_;
};

using CounterVec = SeriesMap<double>;

class HistogramVec : public SeriesMap<Histogram> {
 public:
  HistogramVec(MetricFamily family, const std::vector<double>& bounds)
      : SeriesMap(std::move(family), Histogram(bounds)) {}
};

// One answer to a scrape. Families are sorted by name, and each is in one piece.
class MetricPage {
 public:
  void Add(const MetricFamily& family, double value) { Add(family, {}, value); }
  void Add(const MetricFamily& family, const LabelValues& values, double value);
  void Add(const MetricFamily& family, const LabelValues& values, const Histogram& histogram);
  void Add(const CounterVec& counters);
  void Add(const HistogramVec& histograms);

  // The text format, version 0.0.4.
  std::string ToString() const;

 private:
  struct Family {
    std::string head;
    std::string samples;
  };
  std::string& SamplesOf(const MetricFamily& family);

  std::map<std::string, Family, std::less<>> families_;
};

inline constexpr std::string_view kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

class Metrics {
 public:
  using Collector = std::function<void(MetricPage&)>;

  // Destroying it ends the registration; may outlive the Metrics.
  class Registration {
   public:
    virtual ~Registration() = default;
  };

  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  [[nodiscard]] std::unique_ptr<Registration> Register(Collector collector);
  std::string Print() const;

 private:
  struct Collectors;
  std::shared_ptr<Collectors> collectors_;
};

// For components that also run without metrics: null if `metrics` is null.
std::unique_ptr<Metrics::Registration> RegisterMetrics(Metrics* metrics,
                                                       Metrics::Collector collector);

// process_*: CPU time, memory, descriptors, start, as every Prometheus client tells them, and which
// build this is.
void AddProcessMetrics(MetricPage& page, std::string_view version);

}  // namespace swell
