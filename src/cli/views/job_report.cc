#include "cli/views/job_report.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/api/objects/pod.h"

namespace swell::cli {
namespace {

std::optional<double> NumberIn(const json::Value& metrics, std::string_view name) {
  const json::Value* value = json::Find(metrics, {name});
  if (value == nullptr || !value->is_number()) return std::nullopt;
  const auto number = value->to_number<double>();
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

// A script that counts its records says more than one that counts steps alone: steps of a larger
// group do more.
void ReadMetrics(const json::Value& metrics, JobReport& report) {
  for (const auto& [name, unit] :
       {std::pair("records_per_second", "records"), std::pair("steps_per_second", "steps"),
        std::pair("throughput", "records")}) {
    report.throughput = NumberIn(metrics, name);
    report.unit = unit;
    if (report.throughput) break;
  }
  report.loss = NumberIn(metrics, "loss");
}

}  // namespace

JobReport ReportOf(const JobView& job, bool only_running) {
  JobReport report;
  for (const json::SharedValue& pod : job.pods) {
    const bool runs = api::Phase(*pod) == "Running";
    if (only_running && !runs) continue;
    const auto step = ParseInt(api::Annotation(*pod, api::keys::kStep));
    const auto epoch = ParseInt(api::Annotation(*pod, api::keys::kEpoch));
    const std::string_view text = api::Annotation(*pod, api::keys::kMetrics);
    if (!step && !epoch && text.empty()) continue;
    report = {.step = step, .epoch = epoch};
    const auto metrics = json::Parse(text.empty() ? "{}" : text, {.depth = 4, .bytes = 16 << 10});
    if (metrics.ok()) ReadMetrics(*metrics, report);
    if (runs) break;
  }
  // A rank that does not move has reported what it did before.
  if (!job.hung.empty()) report.throughput.reset();
  return report;
}

std::optional<int64_t> RemainingSeconds(const JobView& job) {
  const bool trains = job.status == "Running" && job.hung.empty();
  return trains && job.progress ? job.progress->remaining_seconds : std::nullopt;
}

std::optional<double> DoneShare(const JobView& job) {
  if (!job.progress || !job.progress->percentage) return std::nullopt;
  if (job.progress->phase == "done" || job.progress->total <= 0) {
    return static_cast<double>(*job.progress->percentage) / 100;
  }
  return std::clamp(
      static_cast<double>(job.progress->step) / static_cast<double>(job.progress->total), 0.0, 1.0);
}

}  // namespace swell::cli
