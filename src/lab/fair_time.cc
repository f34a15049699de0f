#include "lab/fair_time.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/check.h"

namespace swell::lab {
namespace {

// The jobs in the cluster over time.
class JobsOverTime {
 public:
  explicit JobsOverTime(const std::vector<JobOutcome>& jobs) {
    std::map<int64_t, int> changes;
    for (const JobOutcome& job : jobs) {
      ++changes[job.submitted_s];
      --changes[job.ended_s];
    }
    int there = 0;
    int64_t since_s = changes.empty() ? 0 : changes.begin()->first;
    double job_seconds = 0;
    for (const auto& [at_s, change] : changes) {
      job_seconds += static_cast<double>(there) * static_cast<double>(at_s - since_s);
      since_s = at_s;
      there += change;
      until_[at_s] = job_seconds;
    }
  }

  double AverageOver(const JobOutcome& job) const {
    const auto seconds = static_cast<double>(job.completion_s());
    if (seconds <= 0) return 1;
    return (until_.at(job.ended_s) - until_.at(job.submitted_s)) / seconds;
  }

 private:
  std::map<int64_t, double> until_;  // seconds of all jobs until then, at each change
};

class Alone {
 public:
  Alone(const ProfileLibrary& profiles, const PolicyKind& policy, const RunOptions& options)
      : profiles_(profiles), policy_(policy), options_(options), by_(options) {
    by_.clock_ns = nullptr;
    by_.on_decision = nullptr;
  }

  // On `share` GPUs of a group. 0: it does not fit.
  Result<double> Seconds(const TraceJob& job, const NodeGroup& group, double share) {
    if (!policy_.resizes) {
      if (job.gpus > group.gpus()) return 0.0;
      SWELL_ASSIGN_OR_RETURN(const double whole, PlayOn(job, group, job.gpus));
      return whole * std::max(1.0, job.gpus / share);
    }
    const double within = std::min<double>(share, group.gpus());
    const int low = std::max(1, static_cast<int>(within));
    SWELL_ASSIGN_OR_RETURN(const double at_low, PlayOn(job, group, low));
    if (within <= low) return at_low * std::max(1.0, 1 / within);
    SWELL_ASSIGN_OR_RETURN(const double at_high, PlayOn(job, group, low + 1));
    return at_low + (at_high - at_low) * (within - low);
  }

 private:
  // What the time depends on: application, requested batch and GPUs, type of GPU, GPUs.
  using Key = std::tuple<std::string, int64_t, int, std::string, int>;

  // A part of one node, or whole nodes.
  static NodeGroup Part(const NodeGroup& group, int gpus) {
    NodeGroup part = group;
    part.nodes = std::max(1, gpus / group.gpus_per_node);
    part.gpus_per_node = std::min(gpus, group.gpus_per_node);
    return part;
  }

  Result<double> PlayOn(const TraceJob& job, const NodeGroup& group, int gpus) {
    // A job that keeps its size needs all of its GPUs, whole nodes or not.
    const int room =
        policy_.resizes || gpus <= group.gpus_per_node
            ? gpus
            : (gpus + group.gpus_per_node - 1) / group.gpus_per_node * group.gpus_per_node;
    const NodeGroup part = Part(group, room);
    const auto [known, added] = seconds_.try_emplace(
        Key{job.application, job.batch, job.gpus, group.type, part.gpus()}, 0.0);
    if (added) {
      SWELL_ASSIGN_OR_RETURN(known->second, PlayOnPart(job, part));
    }
    return known->second + WaitFor(job);
  }

  Result<double> PlayOnPart(const TraceJob& job, const NodeGroup& part) {
    by_.shape.groups = {part};
    Trace trace{"alone", "pollux", {job}};
    trace.jobs.front().submitted_s = 0;
    SWELL_ASSIGN_OR_RETURN(const RunOutcome run, Play(trace, profiles_, policy_, by_));
    return static_cast<double>(run.jobs.front().ended_s - run.jobs.front().started_s);
  }

  // Until the round that sees the job.
  double WaitFor(const TraceJob& job) const {
    if (policy_.on_events && options_.round_s == 0) return 0;
    const int64_t round_s = options_.round_s > 0 ? options_.round_s : policy_.round_s;
    return static_cast<double>((round_s - job.submitted_s % round_s) % round_s);
  }

  const ProfileLibrary& profiles_;
  const PolicyKind& policy_;
  const RunOptions& options_;
  RunOptions by_;  // of runs with one job
  std::map<Key, double> seconds_;
};

// 0 if the job fits on no type.
Result<double> FairSeconds(Alone& alone,
                           const TraceJob& job,
                           const ClusterShape& shape,
                           double share) {
  double weights = 0, speeds = 0;
  for (const NodeGroup& group : shape.groups) {
    SWELL_ASSIGN_OR_RETURN(const double seconds, alone.Seconds(job, group, share));
    if (seconds <= 0) continue;
    weights += group.gpus();
    speeds += group.gpus() / seconds;
  }
  return speeds > 0 ? weights / speeds : 0;
}

}  // namespace

Status AddFairTimes(const Trace& trace,
                    const ProfileLibrary& profiles,
                    const PolicyKind& policy,
                    const RunOptions& options,
                    RunOutcome& outcome) {
  SWELL_CHECK(trace.jobs.size() == outcome.jobs.size());
  const double gpus = options.shape.gpus();
  const double crowding = std::max(1.0, static_cast<double>(trace.jobs.size()) / gpus);
  const JobsOverTime over_time(outcome.jobs);
  Alone alone(profiles, policy, options);
  for (size_t i = 0; i < trace.jobs.size(); ++i) {
    const TraceJob& job = trace.jobs[i];
    JobOutcome& its = outcome.jobs[i];
    if (job.application.empty() || !job.plan.empty()) {
      its.fair_s = static_cast<double>(job.duration_s) * crowding;
      continue;
    }
    const double share = gpus / over_time.AverageOver(its);
    SWELL_ASSIGN_OR_RETURN(its.fair_s, FairSeconds(alone, job, options.shape, share));
  }
  return {};
}

}  // namespace swell::lab
