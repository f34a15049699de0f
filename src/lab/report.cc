#include "lab/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "base/strings.h"

namespace swell::lab {
namespace {

double AverageOf(const RunOutcome& run) {
  double sum = 0;
  for (const JobOutcome& job : run.jobs) sum += static_cast<double>(job.completion_s());
  return sum / static_cast<double>(run.jobs.size());
}

double Mean(const std::vector<double>& values, const std::vector<size_t>& chosen) {
  double sum = 0;
  for (size_t i : chosen) sum += values[i];
  return sum / static_cast<double>(chosen.size());
}

// What artefacts of the field call p99: sorted[int(.99 n)].
template <class T>
T Percentile(std::vector<T>& values, double part) {
  std::sort(values.begin(), values.end());
  const auto at = static_cast<size_t>(part * static_cast<double>(values.size()));
  return values[std::min(at, values.size() - 1)];
}

Interval Middle(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return {values[n * 25 / 1000], values[std::min(n - 1, n * 975 / 1000)]};
}

constexpr double kUnfairFrom = 1.05;

void AddRatios(const PolicyRuns& policy, PolicySummary& sum) {
  double worst = 0, unfair = 0;
  for (const RunOutcome& run : policy.runs) {
    for (const JobOutcome& job : run.jobs) {
      if (job.fair_s <= 0) return;
      const double ratio = static_cast<double>(job.completion_s()) / job.fair_s;
      worst = std::max(worst, ratio);
      unfair += ratio > kUnfairFrom ? 1 : 0;
    }
  }
  sum.worst_ratio = worst;
  sum.unfair = unfair / static_cast<double>(sum.jobs);
}

constexpr double kShortPart = 0.02;
constexpr double kNoGpu = 1e-9;  // sums of seconds are not exact

void AddTenantHours(const PolicyRuns& policy, PolicySummary& sum) {
  PolicySummary::TenantHours of;
  for (const RunOutcome& run : policy.runs) {
    for (const TenantHour& hour : run.tenant_hours) {
      const double lacks = hour.Short();
      const bool fair = lacks <= kShortPart * hour.share + kNoGpu;
      ++of.count;
      of.fair += fair ? 1 : 0;
      of.nearly += fair || lacks < 1 ? 1 : 0;
      of.divisible += lacks - hour.too_little <= kShortPart * hour.share + kNoGpu ? 1 : 0;
      of.worst_short = std::max(of.worst_short, lacks);
    }
  }
  if (of.count == 0) return;
  of.fair /= static_cast<double>(of.count);
  of.nearly /= static_cast<double>(of.count);
  of.divisible /= static_cast<double>(of.count);
  sum.tenant_hours = of;
}

void AddRevoked(const PolicyRuns& policy, PolicySummary& sum) {
  GpuSeconds revoked, undisturbed;
  PolicySummary::Revoked of;
  for (const RunOutcome& run : policy.runs) {
    if (!run.undisturbed_gpu_s) return;
    revoked += run.gpu_s;
    undisturbed += *run.undisturbed_gpu_s;
    of.revocations += static_cast<double>(run.revocations);
  }
  of.revocations /= static_cast<double>(policy.runs.size());
  of.goodput = revoked.UsefulPart() / undisturbed.UsefulPart();
  of.lost_gpu_hours = revoked.lost / 3600 / static_cast<double>(sum.jobs);
  sum.revoked = of;
}

PolicySummary SummaryOf(const PolicyRuns& policy) {
  PolicySummary sum;
  sum.policy = policy.policy;
  sum.looks_ahead = policy.looks_ahead;
  sum.observed = policy.observed;
  std::vector<int64_t> completions, decide_ns;
  for (const RunOutcome& run : policy.runs) {
    int64_t last = 0;
    for (const JobOutcome& job : run.jobs) {
      completions.push_back(job.completion_s());
      last = std::max(last, job.ended_s);
      sum.restarts += job.restarts;
      sum.gpu_hours += job.gpu_s / 3600;
    }
    sum.makespan_s += static_cast<double>(last) / static_cast<double>(policy.runs.size());
    sum.hash = StableHash(HashText(run.hash), sum.hash);
    decide_ns.insert(decide_ns.end(), run.decide_ns.begin(), run.decide_ns.end());
  }
  sum.jobs = static_cast<int64_t>(completions.size());
  sum.restarts /= static_cast<double>(sum.jobs);
  sum.gpu_hours /= static_cast<double>(sum.jobs);
  AddRatios(policy, sum);
  AddTenantHours(policy, sum);
  AddRevoked(policy, sum);
  sum.p99_s = static_cast<double>(Percentile(completions, 0.99));
  if (!decide_ns.empty()) {
    sum.decide_p50_ms = static_cast<double>(Percentile(decide_ns, 0.5)) / 1e6;
    sum.decide_p99_ms = static_cast<double>(Percentile(decide_ns, 0.99)) / 1e6;
  }
  return sum;
}

json::Value RangeJson(const Interval& range, double unit) {
  return json::Array{range.low * unit, range.high * unit};
}

}  // namespace

std::string HashText(uint64_t hash) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

std::vector<PolicySummary> Summarize(const std::vector<PolicyRuns>& all, uint64_t seed) {
  SWELL_CHECK(!all.empty() && !all.front().runs.empty());
  const size_t traces = all.front().runs.size();
  std::vector<size_t> chosen(traces);
  for (size_t i = 0; i < traces; ++i) chosen[i] = i;
  std::vector<PolicySummary> summaries;
  std::vector<std::vector<double>> averages;  // by policy and trace
  for (const PolicyRuns& policy : all) {
    SWELL_CHECK(policy.runs.size() == traces);
    PolicySummary& sum = summaries.emplace_back(SummaryOf(policy));
    std::vector<double> its;
    for (const RunOutcome& run : policy.runs) its.push_back(AverageOf(run));
    sum.average_s = Mean(its, chosen);
    averages.push_back(std::move(its));
    if (averages.size() > 1) sum.change = sum.average_s / summaries.front().average_s - 1;
  }
  if (traces < 2) return summaries;
  Random random(seed);
  std::vector<std::vector<double>> means(all.size()), changes(all.size());
  for (int resample = 0; resample < kResamples; ++resample) {
    // The same traces for every policy: that they differ from trace to trace cancels out.
    for (size_t& trace : chosen) trace = random.Below(traces);
    const double first = Mean(averages.front(), chosen);
    for (size_t p = 0; p < all.size(); ++p) {
      means[p].push_back(Mean(averages[p], chosen));
      changes[p].push_back(means[p].back() / first - 1);
    }
  }
  for (size_t p = 0; p < all.size(); ++p) {
    summaries[p].average_range = Middle(means[p]);
    if (p > 0) summaries[p].change_range = Middle(changes[p]);
  }
  return summaries;
}

json::Value ToJson(const std::vector<PolicySummary>& summaries) {
  json::Array list;
  for (const PolicySummary& sum : summaries) {
    json::Object entry{{"policy", sum.policy},
                       {"looksAhead", sum.looks_ahead},
                       {"jobs", sum.jobs},
                       {"averageSeconds", sum.average_s},
                       {"p99Seconds", sum.p99_s},
                       {"makespanSeconds", sum.makespan_s},
                       {"restartsPerJob", sum.restarts},
                       {"gpuHoursPerJob", sum.gpu_hours}};
    if (!sum.observed) entry["decisionsHash"] = HashText(sum.hash);
    if (sum.average_range) entry["averageSeconds95"] = RangeJson(*sum.average_range, 1);
    if (sum.change) entry["changePercent"] = *sum.change * 100;
    if (sum.change_range) entry["changePercent95"] = RangeJson(*sum.change_range, 100);
    if (sum.worst_ratio) entry["worstFinishTimeRatio"] = *sum.worst_ratio;
    if (sum.unfair) entry["unfairPercent"] = *sum.unfair * 100;
    if (sum.tenant_hours) {
      entry["tenantHours"] = sum.tenant_hours->count;
      entry["tenantHoursWithin2Percent"] = sum.tenant_hours->fair * 100;
      entry["tenantHoursWithin2PercentOrOneGpu"] = sum.tenant_hours->nearly * 100;
      entry["tenantHoursWithin2PercentOrTooLittle"] = sum.tenant_hours->divisible * 100;
      entry["worstTenantHourShortGpus"] = sum.tenant_hours->worst_short;
    }
    if (sum.revoked) {
      entry["goodputPercent"] = sum.revoked->goodput * 100;
      entry["revocations"] = sum.revoked->revocations;
      entry["lostGpuHoursPerJob"] = sum.revoked->lost_gpu_hours;
    }
    if (sum.decide_p50_ms) entry["decideMsP50"] = *sum.decide_p50_ms;
    if (sum.decide_p99_ms) entry["decideMsP99"] = *sum.decide_p99_ms;
    list.push_back(std::move(entry));
  }
  return list;
}

std::string JobsAsCsv(const std::vector<PolicyRuns>& all, const std::vector<std::string>& traces) {
  std::string out =
      "policy,trace,job,submit_s,start_s,end_s,completion_s,restarts,gpu_s,fair_s,lost_gpu_s\n";
  for (const PolicyRuns& policy : all) {
    for (size_t i = 0; i < policy.runs.size(); ++i) {
      for (const JobOutcome& job : policy.runs[i].jobs) {
        char numbers[160];
        std::snprintf(numbers, sizeof numbers, ",%lld,%lld,%lld,%lld,%d,%.0f",
                      static_cast<long long>(job.submitted_s),
                      static_cast<long long>(job.started_s), static_cast<long long>(job.ended_s),
                      static_cast<long long>(job.completion_s()), job.restarts, job.gpu_s);
        out += StrCat(policy.policy, ",", traces[i], ",", job.name, numbers, ",",
                      job.fair_s > 0 ? StrCat(std::llround(job.fair_s)) : "", ",",
                      std::llround(job.lost_gpu_s), "\n");
      }
    }
  }
  return out;
}

std::string TenantHoursAsCsv(const std::vector<PolicyRuns>& all,
                             const std::vector<std::string>& traces) {
  std::string out = "policy,trace,tenant,hour,asked,share,held,too_little\n";
  for (const PolicyRuns& policy : all) {
    for (size_t i = 0; i < policy.runs.size(); ++i) {
      for (const TenantHour& hour : policy.runs[i].tenant_hours) {
        char numbers[120];
        std::snprintf(numbers, sizeof numbers, ",%lld,%.3f,%.3f,%.3f,%.3f\n",
                      static_cast<long long>(hour.hour), hour.asked, hour.share, hour.held,
                      hour.too_little);
        out += StrCat(policy.policy, ",", traces[i], ",", hour.tenant, numbers);
      }
    }
  }
  return out;
}

}  // namespace swell::lab
