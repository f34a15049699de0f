// Report: what runs of policies over the same traces amount to, side by side.
//
// - Threads: plain values and pure functions.
// - Invariants: equal runs and seed, equal report; times of decisions are the only exception.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "json/value.h"
#include "lab/simulator.h"

namespace swell::lab {

// The middle 95 % of a bootstrap.
struct Interval {
  double low = 0, high = 0;
};

struct PolicySummary {
  std::string policy;
  bool looks_ahead = false;
  bool observed = false;  // it happened: nobody played it, there is no hash
  int64_t jobs = 0;
  double average_s = 0;                   // mean over traces of the average completion time
  std::optional<Interval> average_range;  // with two traces or more
  double p99_s = 0;                       // of all jobs together
  double makespan_s = 0;                  // mean over traces, from the trace's beginning
  double restarts = 0;                    // a job
  double gpu_hours = 0;                   // a job
  // If all jobs have fair times (fair_time.h): the largest ratio of a completion time to its fair
  // time, and the part of jobs with more than 1.05.
  std::optional<double> worst_ratio, unfair;
  // Where jobs have tenants: over all hours in which a tenant asks for GPUs (tenant_hours.h).
  struct TenantHours {
    int64_t count = 0;
    double fair = 0;         // part of them in which it held its share, less 2 % of it
    double nearly = 0;       // the same, if one GPU less counts as its share: GPUs are not split
    double divisible = 0;    // the same, less what was too little for any of its waiting jobs
    double worst_short = 0;  // by the most GPUs below its share, on average over the hour
  };
  std::optional<TenantHours> tenant_hours;
  // Where nodes were revoked.
  struct Revoked {
    double goodput = 0;         // useful part of GPU-seconds, divided by that without revocations
    double revocations = 0;     // of a trace, on average
    double lost_gpu_hours = 0;  // of training that was lost, for each job on average
  };
  std::optional<Revoked> revoked;
  uint64_t hash = 0;  // of all decisions in all traces
  // Beside the first policy: the part by which the average is longer; negative: shorter.
  std::optional<double> change;
  std::optional<Interval> change_range;
  // Times of one decision; empty where they were not measured.
  std::optional<double> decide_p50_ms, decide_p99_ms;
};

struct PolicyRuns {
  std::string policy;
  bool looks_ahead = false;
  std::vector<RunOutcome> runs;  // one for each trace
  bool observed = false;
};

// `all` has at least one policy, every policy the same traces, every trace a job. The intervals
// come from `kResamples` paired bootstraps over traces.
inline constexpr int kResamples = 10'000;
std::vector<PolicySummary> Summarize(const std::vector<PolicyRuns>& all, uint64_t seed);

json::Value ToJson(const std::vector<PolicySummary>& summaries);

// policy,trace,job,submit_s,start_s,end_s,completion_s,restarts,gpu_s,fair_s (empty: unknown),
// lost_gpu_s
std::string JobsAsCsv(const std::vector<PolicyRuns>& all, const std::vector<std::string>& traces);

// policy,trace,tenant,hour,asked,share,held,too_little: GPUs, on average over the hour
std::string TenantHoursAsCsv(const std::vector<PolicyRuns>& all,
                             const std::vector<std::string>& traces);

std::string HashText(uint64_t hash);  // 16 hexadecimal digits

}  // namespace swell::lab
