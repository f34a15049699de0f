#include "lab/history.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace swell::lab {
namespace {

constexpr double kGpusMax = 1'000'000;
constexpr double kSecondsMax = 1e10;

// A part of a GPU keeps a whole one busy here: GPUs are not divided in the laboratory.
int WholeGpus(double gpus) {
  return static_cast<int>(std::ceil(std::clamp(gpus, 1.0, kGpusMax) - 1e-6));
}

// As if each job had held its mean from its start to its end: when it held how much is not kept.
std::vector<GpusInUse> InUseOf(const std::vector<JobOutcome>& jobs) {
  std::map<int64_t, double> changes;
  for (const JobOutcome& job : jobs) {
    const int64_t seconds = job.ended_s - job.started_s;
    if (seconds <= 0) continue;
    const double mean = job.gpu_s / static_cast<double>(seconds);
    changes[job.started_s] += mean;
    changes[job.ended_s] -= mean;
  }
  std::vector<GpusInUse> in_use;
  double held = 0;
  for (const auto& [at_s, change] : changes) {
    held = std::max(0.0, held + change);
    in_use.push_back({at_s, held});
  }
  return in_use;
}

bool DidWork(const PastJob& job) {
  return job.gpus > 0 && job.work_gpu_s > 0 && job.ended_s >= job.submitted_s;
}

// What was held and not productive counts as the cost of the starts.
int64_t MedianStart(const std::vector<PastJob>& jobs) {
  std::vector<double> costs;
  for (const PastJob& job : jobs) {
    const double idle_s = std::max(0.0, job.held_gpu_s - job.work_gpu_s) / job.gpus;
    costs.push_back(idle_s / (1 + job.restarts));
  }
  const auto middle = costs.begin() + static_cast<std::ptrdiff_t>(costs.size() / 2);
  std::nth_element(costs.begin(), middle, costs.end());
  return std::llround(std::min(*middle, kSecondsMax));
}

}  // namespace

Result<History> HistoryOf(const std::string& name, std::vector<PastJob> jobs) {
  History history;
  history.trace.name = name;
  history.trace.format = "swell";
  history.trace.left_out =
      static_cast<int64_t>(std::erase_if(jobs, [](const PastJob& job) { return !DidWork(job); }));
  if (jobs.empty()) return Status(Code::kNotFound, "no job that used GPUs and ended");
  std::sort(jobs.begin(), jobs.end(), [](const PastJob& a, const PastJob& b) {
    return std::tie(a.submitted_s, a.name) < std::tie(b.submitted_s, b.name);
  });
  const int64_t first_s = jobs.front().submitted_s;
  history.trace.began_s = first_s;
  history.start_s = MedianStart(jobs);
  for (const PastJob& past : jobs) {
    TraceJob& job = history.trace.jobs.emplace_back();
    job.name = past.name;
    job.tenant = past.tenant;
    job.submitted_s = past.submitted_s - first_s;
    job.gpus = WholeGpus(past.gpus);
    job.gpus_max = std::max(job.gpus, WholeGpus(past.gpus_max));
    job.gpus_min = std::min(job.gpus, WholeGpus(past.gpus_min));
    job.priority = past.priority;
    const double seconds = std::clamp(past.work_gpu_s / past.gpus, 1.0, kSecondsMax);
    job.duration_s = std::llround(seconds);
    const int64_t started_s = std::clamp(past.started_s, past.submitted_s, past.ended_s);
    history.as_it_was.jobs.push_back({past.name, job.submitted_s, started_s - first_s,
                                      past.ended_s - first_s, past.restarts, past.held_gpu_s});
  }
  history.as_it_was.in_use = InUseOf(history.as_it_was.jobs);
  return history;
}

}  // namespace swell::lab
