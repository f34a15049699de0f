// Trace: jobs in the order of a file: when they came, what they asked for, how long they ran.
//
// - Threads: plain values and pure functions.
// - Invariants: names differ; at least one job; submissions are at least 0 and count from the
//   first instant of the trace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace swell::lab {

struct TraceJob {
  std::string name;
  std::string tenant;  // empty: unknown
  int64_t submitted_s = 0;
  int gpus = 1;             // requested
  std::string application;  // of a profile; empty: only its duration is known
  int64_t batch = 0;        // requested, with an application
  int64_t duration_s = 0;   // on the requested GPUs, without an application
  int gpus_max = 0;         // the most that an elastic job may use; 0: as many as it requested
  int gpus_min = 0;         // on fewer it does not train; 0: not known, any number is tried
  int priority = 0;         // higher ones go first
  std::string plan = {};    // how its application is spread over GPUs, with steps (Rubick)
  int64_t steps = 0;        // until it ends, with a plan

  int most_gpus() const { return gpus_max > gpus ? gpus_max : gpus; }
};

struct Trace {
  std::string name;    // the file's, without its folder
  std::string format;  // pollux, rubick, philly, openb, sacct, shockwave, swell
  std::vector<TraceJob> jobs;
  int64_t began_s = 0;   // its first instant, in seconds since 1970; 0: not known
  int64_t left_out = 0;  // jobs of the file that used no GPU, never began or still run
};

// Reads a file in one of the formats by its header: Pollux and Sia (name,time,application,
// num_replicas,batch_size), Rubick (name,submission_time,duration,application,num_gpus,exec_plan,
// steps,is_sla and more), Philly as the authors of Pollux reduced it (timestamp,duration,
// num_gpus,gpu_time,cluster), Alibaba's list of pods "openb" (name,num_gpu,pod_phase,creation_time,
// deletion_time,scheduled_time and more; FGD, ATC'23), what `sacct -P` prints
// (JobID|Submit|Start|End|...), Shockwave's (no header, shockwave.h), and Swell's own
// (job,tenant,submit_s,gpus,gpus_max,duration_s and, as far as known, gpus_min,priority).
Result<Trace> ReadTrace(const std::string& path);
// The formats with one file: all but Shockwave's.
Result<Trace> ParseTrace(const std::string& path, std::string text);
// In Swell's own format. Jobs without applications only.
std::string TraceAsCsv(const Trace& trace);

// Seconds since 1970 of "2017-10-09 07:01:55" or "2017-10-09T07:01:55", as UTC.
Result<int64_t> ParseInstant(std::string_view text);
// The inverse: "2017-10-09 07:01:55".
std::string InstantText(int64_t unix_s);

}  // namespace swell::lab
