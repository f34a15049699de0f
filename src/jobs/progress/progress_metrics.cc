#include "jobs/progress/progress_metrics.h"

#include <algorithm>

#include "kube/api/meta/meta.h"
#include "kube/api/objects/progress.h"

namespace swell::jobs {

ProgressMetrics::ProgressMetrics(const controllers::Context& context,
                                 const client::Resource& resource)
    : resource_(resource.GroupResource()),
      jobs_(context.informers.Of(resource)),
      registered_(RegisterMetrics(context.metrics, [this](MetricPage& page) { Collect(page); })) {}

void ProgressMetrics::Collect(MetricPage& page) const {
  // Two kinds may have a job of one name in one namespace.
  const std::vector<std::string_view> labels{"namespace", "job", "resource"};
  const MetricFamily step{"swell_job_step", MetricType::kGauge,
                          "Steps that the job has finished, as its first rank reports it.", labels};
  const MetricFamily ratio{"swell_job_progress_ratio", MetricType::kGauge,
                           "Share of the job's steps that is done. Absent if the total is unknown.",
                           labels};
  const MetricFamily speed{"swell_job_steps_per_second", MetricType::kGauge,
                           "Steps of the job per second. Absent unless it runs.", labels};
  const MetricFamily remaining{"swell_job_remaining_seconds", MetricType::kGauge,
                               "Time that the rest of the job takes at its present speed.", labels};
  const MetricFamily productive{
      "swell_job_productive_ratio", MetricType::kGauge,
      "Share of the job's held GPU time spent training, less the lost work.", labels};
  size_t shown = 0;
  for (const auto& [key, job] : jobs_.objects()) {
    if (shown == kJobsMax) break;
    const bool over =
        api::ConditionIsTrue(*job, "Succeeded") || api::ConditionIsTrue(*job, "Failed");
    const auto progress = over ? std::nullopt : api::ProgressOfJob(*job);
    if (!progress) continue;
    ++shown;
    const LabelValues values{api::Namespace(*job), api::Name(*job), resource_};
    page.Add(step, values, static_cast<double>(progress->step));
    if (json::Find(*job, {"status", "gpuTime", "productivePercentage"}) != nullptr) {
      const int64_t percent = json::GetInt(*job, {"status", "gpuTime", "productivePercentage"});
      page.Add(productive, values, static_cast<double>(std::clamp<int64_t>(percent, 0, 100)) / 100);
    }
    if (progress->total > 0) {
      const auto done = static_cast<double>(std::min(progress->step, progress->total));
      page.Add(ratio, values, done / static_cast<double>(progress->total));
    }
    if (!api::ConditionIsTrue(*job, "Running")) continue;
    if (progress->steps_per_second > 0) page.Add(speed, values, progress->steps_per_second);
    if (progress->remaining_seconds) {
      page.Add(remaining, values, static_cast<double>(*progress->remaining_seconds));
    }
  }
}

}  // namespace swell::jobs
