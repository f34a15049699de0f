#include "ui/history/history_metrics.h"

#include <array>
#include <string>
#include <string_view>

namespace swell::ui {
namespace {

using enum MetricType;

struct Told {
  std::string_view series;
  MetricFamily family;
};

const std::vector<Told>& AllTold() {
  const std::vector<std::string_view> of_job{"namespace", "job"}, of_pool{"pool"}, of_node{"node"};
  static const std::vector<Told> all = {
      {"gpu_utilized",
       {"swell_pool_gpus_utilized",
        kGauge,
        "GPUs of the node pool in use, as far as is measured.",
        {"pool"}}},
      {"node_gpu_utilized",
       {"swell_node_gpus_utilized",
        kGauge,
        "GPUs of the node in use, as far as is measured.",
        {"node"}}},
      {"cpu_total", {"swell_pool_cpus", kGauge, "CPUs that pods may use in the pool.", of_pool}},
      {"cpu_held",
       {"swell_pool_cpus_held", kGauge, "CPUs that pods in the pool request.", of_pool}},
      {"cpu_used", {"swell_pool_cpus_used", kGauge, "CPUs that pods in the pool use.", of_pool}},
      {"memory_total",
       {"swell_pool_memory_bytes", kGauge, "Memory that pods may use in the pool.", of_pool}},
      {"memory_held",
       {"swell_pool_memory_held_bytes", kGauge, "Memory that pods in the pool request.", of_pool}},
      {"memory_used",
       {"swell_pool_memory_used_bytes", kGauge, "Memory that pods in the pool use.", of_pool}},
      {"node_cpu_held",
       {"swell_node_cpus_held", kGauge, "CPUs that pods on the node request.", of_node}},
      {"node_cpu_used",
       {"swell_node_cpus_used", kGauge, "CPUs that pods on the node use.", of_node}},
      {"node_memory_held",
       {"swell_node_memory_held_bytes", kGauge, "Memory that pods on the node request.", of_node}},
      {"node_memory_used",
       {"swell_node_memory_used_bytes", kGauge, "Memory that pods on the node use.", of_node}},
      {"queue_length", {"swell_queue_jobs", kGauge, "Jobs that wait."}},
      {"queue_gpus", {"swell_queue_gpus", kGauge, "GPUs that waiting jobs request."}},
      {"queue_wait_p50_seconds",
       {"swell_queue_wait_p50_seconds", kGauge,
        "Median of the seconds that jobs have waited that wait now."}},
      {"queue_wait_p95_seconds",
       {"swell_queue_wait_p95_seconds", kGauge,
        "95th percentile of the seconds that jobs have waited that wait now."}},
      {"running_jobs", {"swell_running_jobs", kGauge, "Jobs with a pod that runs."}},
      {"job_throughput",
       {"swell_job_throughput", kGauge,
        "Records, or steps where the script counts no records, that the job trains per second.",
        of_job}},
      {"job_loss",
       {"swell_job_loss", kGauge, "The loss that the job's script reported last.", of_job}},
  };
  return all;
}

const MetricFamily* FamilyOf(std::string_view series) {
  for (const Told& one : AllTold()) {
    if (one.series == series) return &one.family;
  }
  return nullptr;
}

}  // namespace

HistoryMetrics::HistoryMetrics(Metrics* metrics, const Clock& clock)
    : clock_(clock),
      registered_(RegisterMetrics(metrics, [this](MetricPage& page) { Collect(page); })) {}

void HistoryMetrics::OnSamples(const std::vector<Sample>& samples) {
  std::vector<Sample> told;
  for (const Sample& sample : samples) {
    if (FamilyOf(sample.series.name) != nullptr) told.push_back(sample);
  }
  const MutexLock lock(mutex_);
  samples_ = std::move(told);
  heard_ = clock_.Steady();
}

void HistoryMetrics::Collect(MetricPage& page) const {
  constexpr size_t kSamplesMost = 5 * SeriesMap<double>::kSeriesMax;
  const MutexLock lock(mutex_);
  if (samples_.empty() || clock_.Steady() - heard_ > kFresh) return;
  for (size_t i = 0; i < samples_.size() && i < kSamplesMost; ++i) {
    const Sample& sample = samples_[i];
    const MetricFamily* family = FamilyOf(sample.series.name);
    LabelValues values;
    for (std::string_view label : family->labels) values.push_back(sample.series.Label(label));
    page.Add(*family, values, sample.value);
  }
}

}  // namespace swell::ui
