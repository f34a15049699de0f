// Simulator: plays a trace on a cluster under a policy, in virtual time.
//
// In rounds, as Pollux' published simulator does it: all jobs advance by a round, the clock moves,
// the policy decides, and its decision takes effect at once. Jobs that come or end within a round
// wait for its end. A policy that decides on events is called at the second of each event too.
// Those of Sia and Rubick differ in what model/rules.h lists.
//
// - Threads: none; a run is one call.
// - Invariants: the same input gives the same decisions and times, on any machine.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/model/profile.h"
#include "lab/policy.h"
#include "lab/revocations.h"
#include "lab/tenant_hours.h"
#include "lab/trace/trace.h"

namespace swell::lab {

// A decision as it is carried out. Everything is valid during the call only.
struct DecisionSeen {
  int64_t now_s = 0;
  const ActiveJobs& jobs;  // as the policy saw them
  const Allocations& before;
  const Allocations& after;
  const Policy& policy;
  const ClusterShape& shape;  // with the nodes that are away
};

struct RunOptions {
  ClusterShape shape;
  Rules rules = Rules::kPollux;
  // The cost of a start, resize or move. Empty: 30 s, or each application's own by Sia's rules.
  std::optional<int64_t> resize_s;
  int64_t round_s =
      0;  // 0: the policy chooses when to decide; else it decides in rounds of this length
  bool fastest_plans = false;  // jobs with execution plans use the fastest one, not the trace's
  std::optional<RevocationOptions> revocations;  // empty: nodes stay
  std::function<int64_t()> clock_ns;             // to time decisions; null: they are not timed
  std::function<void(const DecisionSeen&)> on_decision;  // may be null
};

struct JobOutcome {
  std::string name;
  int64_t submitted_s = 0;
  int64_t started_s = 0;
  int64_t ended_s = 0;
  int restarts = 0;
  double gpu_s = 0;
  double lost_gpu_s = 0;  // of gpu_s: training that was lost with a node
  double fair_s = 0;      // completion time on a fair share, by AddFairTimes; 0: unknown

  int64_t completion_s() const { return ended_s - submitted_s; }
};

// From `at_s` on, `gpus` GPUs are held.
struct GpusInUse {
  int64_t at_s = 0;
  double gpus = 0;
};

// The sums over all jobs.
struct GpuSeconds {
  double held = 0;
  double paused = 0;   // of those: starts, resizes, moves
  double lost = 0;     // of those: training that was done again
  double vacated = 0;  // not of those: held until a notice came, and idle during it

  double UsefulPart() const;
  GpuSeconds& operator+=(const GpuSeconds& other);
};

struct RunOutcome {
  std::vector<JobOutcome> jobs;  // in the order of the trace
  uint64_t hash = 0;             // of all decisions
  int64_t decisions = 0;         // calls of the policy
  std::vector<int64_t> decide_ns;
  std::vector<GpusInUse> in_use;         // by time; an entry for each change
  std::vector<TenantHour> tenant_hours;  // empty where no job of the trace has a tenant
  int64_t revocations = 0;
  GpuSeconds gpu_s;
  std::optional<GpuSeconds> undisturbed_gpu_s;  // by AddUndisturbed
};

// Errors: an application without a profile or plan, a job larger than the cluster, a job that never
// ends, GPUs of several types under a policy that knows only one, jobs with execution plans on
// several types or under a policy that tries any number of GPUs.
Result<RunOutcome> Play(const Trace& trace,
                        const ProfileLibrary& profiles,
                        const PolicyKind& policy,
                        const RunOptions& options);

// Plays the same without revocations. Goodput compares the useful part of the GPU-seconds of
// `outcome` with that of this run.
Status AddUndisturbed(const Trace& trace,
                      const ProfileLibrary& profiles,
                      const PolicyKind& policy,
                      const RunOptions& options,
                      RunOutcome& outcome);

}  // namespace swell::lab
