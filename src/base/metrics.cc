#include "base/metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/descriptors.h"
#include "base/file.h"
#include "base/strings.h"

namespace swell {
namespace {

std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  if (value == std::floor(value) && std::abs(value) < 1e15) {
    return std::to_string(static_cast<int64_t>(value));
  }
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

// Label values may come from users: what would end the line or the value is escaped.
void AppendEscaped(std::string& out, std::string_view text, bool quote) {
  for (char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\\' || (quote && c == '"')) {
      out += '\\';
      out += c;
    } else {
      out += c;
    }
  }
}

std::string_view TypeName(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return "counter";
    case MetricType::kGauge:
      return "gauge";
    case MetricType::kHistogram:
      return "histogram";
  }
  return "untyped";
}

// {verb="GET",le="0.5"}; `bound` empty: without le.
void AppendLabels(std::string& out,
                  const MetricFamily& family,
                  const LabelValues& values,
                  std::string_view bound) {
  if (values.empty() && bound.empty()) return;
  out += '{';
  const size_t count = std::min(values.size(), family.labels.size());
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) out += ',';
    out += family.labels[i];
    out += "=\"";
    AppendEscaped(out, values[i], true);
    out += '"';
  }
  if (!bound.empty()) out += StrCat(count > 0 ? "," : "", "le=\"", bound, "\"");
  out += '}';
}

LabelValues ValuesIn(std::string_view key) {
  LabelValues values;
  for (size_t end; (end = key.find('\0')) != std::string_view::npos; key.remove_prefix(end + 1)) {
    values.push_back(key.substr(0, end));
  }
  return values;
}

// The field of /proc/self/stat with that number, counted from 1 as proc(5) does.
std::optional<uint64_t> StatField(std::string_view stat, size_t number) {
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  const auto fields = Split(Trim(stat.substr(name_end + 1)), ' ');
  const size_t index = number - 3;
  return index < fields.size() ? ParseUint(fields[index]) : std::nullopt;
}

std::optional<uint64_t> BootTime() {
  auto text = ReadFile("/proc/stat");
  if (!text.ok()) return std::nullopt;
  for (std::string_view line : Split(*text, '\n')) {
    if (line.starts_with("btime ")) return ParseUint(Trim(line.substr(6)));
  }
  return std::nullopt;
}

}  // namespace

void Histogram::Observe(double value) {
  const auto bound = std::lower_bound(bounds_->begin(), bounds_->end(), value);
  ++counts_[static_cast<size_t>(bound - bounds_->begin())];
  sum_ += value;
}

const std::vector<double>& LatencyBounds() {
  static const std::vector<double> bounds{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                          0.25,   0.5,   1,      2.5,   5,    10,    30,   60};
  return bounds;
}

const std::vector<double>& WaitBounds() {
  static const std::vector<double> bounds{1,    5,    15,    30,    60,    300,    900,
                                          1800, 3600, 10800, 28800, 86400, 259200, 604800};
  return bounds;
}

std::string& MetricPage::SamplesOf(const MetricFamily& family) {
  auto found = families_.find(family.name);
  if (found == families_.end()) {
    found = families_.emplace(std::string(family.name), Family{}).first;
    std::string& head = found->second.head;
    head = StrCat("# HELP ", family.name, " ");
    AppendEscaped(head, family.help, false);
    head += StrCat("\n# TYPE ", family.name, " ", TypeName(family.type), "\n");
  }
  return found->second.samples;
}

void MetricPage::Add(const MetricFamily& family, const LabelValues& values, double value) {
  std::string& out = SamplesOf(family);
  out += family.name;
  AppendLabels(out, family, values, {});
  out += StrCat(" ", Number(value), "\n");
}

void MetricPage::Add(const MetricFamily& family,
                     const LabelValues& values,
                     const Histogram& histogram) {
  std::string& out = SamplesOf(family);
  uint64_t below = 0;
  for (size_t i = 0; i < histogram.counts().size(); ++i) {
    below += histogram.counts()[i];
    const bool last = i == histogram.bounds().size();
    out += StrCat(family.name, "_bucket");
    AppendLabels(out, family, values, last ? "+Inf" : Number(histogram.bounds()[i]));
    out += StrCat(" ", below, "\n");
  }
  out += StrCat(family.name, "_sum");
  AppendLabels(out, family, values, {});
  out += StrCat(" ", Number(histogram.sum()), "\n", family.name, "_count");
  AppendLabels(out, family, values, {});
  out += StrCat(" ", below, "\n");
}

void MetricPage::Add(const CounterVec& counters) {
  SamplesOf(counters.family());
  for (const auto& [key, value] : counters.series()) {
    Add(counters.family(), ValuesIn(key), value);
  }
}

void MetricPage::Add(const HistogramVec& histograms) {
  SamplesOf(histograms.family());
  for (const auto& [key, histogram] : histograms.series()) {
    Add(histograms.family(), ValuesIn(key), histogram);
  }
}

std::string MetricPage::ToString() const {
  std::string out;
  for (const auto& [name, family] : families_) out += family.head + family.samples;
  return out;
}

struct Metrics::Collectors {
  uint64_t next = 1;
  std::map<uint64_t, Collector> by_number;
};

namespace {

class Registered final : public Metrics::Registration {
 public:
  explicit Registered(std::function<void()> end) : end_(std::move(end)) {}
  ~Registered() override { end_(); }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

 private:
  std::function<void()> end_;
};

}  // namespace

Metrics::Metrics() : collectors_(std::make_shared<Collectors>()) {}
Metrics::~Metrics() = default;

std::unique_ptr<Metrics::Registration> Metrics::Register(Collector collector) {
  const uint64_t number = collectors_->next++;
  collectors_->by_number.emplace(number, std::move(collector));
  return std::make_unique<Registered>([weak = std::weak_ptr<Collectors>(collectors_), number] {
    if (auto all = weak.lock()) all->by_number.erase(number);
  });
}

std::string Metrics::Print() const {
  MetricPage page;
  for (const auto& [number, collect] : collectors_->by_number) collect(page);
  return page.ToString();
}

std::unique_ptr<Metrics::Registration> RegisterMetrics(Metrics* metrics,
                                                       Metrics::Collector collector) {
  return metrics == nullptr ? nullptr : metrics->Register(std::move(collector));
}

void AddProcessMetrics(MetricPage& page, std::string_view version) {
  using enum MetricType;
  page.Add({"swell_build_info",
            kGauge,
            "The version of this build. The value is always 1.",
            {"version"}},
           {version}, 1);
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) {
    auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    page.Add({"process_cpu_seconds_total", kCounter, "User and system CPU time spent in seconds."},
             seconds(usage.ru_utime) + seconds(usage.ru_stime));
  }
  if (auto names = ListDir("/proc/self/fd"); names.ok()) {
    page.Add({"process_open_fds", kGauge, "Open file descriptors."},
             static_cast<double>(names->size()) - 1);  // one reads the list
  }
  page.Add({"process_max_fds", kGauge, "Maximum number of open file descriptors."},
           static_cast<double>(DescriptorLimit()));
  auto stat = ReadFile("/proc/self/stat");
  if (!stat.ok()) return;
  constexpr size_t kThreads = 20, kStart = 22, kVirtual = 23, kResident = 24;
  if (auto threads = StatField(*stat, kThreads)) {
    page.Add({"process_threads", kGauge, "Threads of this process."},
             static_cast<double>(*threads));
  }
  if (auto bytes = StatField(*stat, kVirtual)) {
    page.Add({"process_virtual_memory_bytes", kGauge, "Virtual memory in bytes."},
             static_cast<double>(*bytes));
  }
  if (auto pages = StatField(*stat, kResident)) {
    page.Add({"process_resident_memory_bytes", kGauge, "Resident memory in bytes."},
             static_cast<double>(*pages) * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  }
  const auto start = StatField(*stat, kStart);
  const auto boot = BootTime();
  if (start && boot) {
    page.Add({"process_start_time_seconds", kGauge, "Start of this process, in unix seconds."},
             static_cast<double>(*boot) +
                 static_cast<double>(*start) / static_cast<double>(::sysconf(_SC_CLK_TCK)));
  }
}

}  // namespace swell
