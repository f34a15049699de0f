// Fair times: how long each job of a run would have taken on its fair share of the cluster.
//
// A job of known duration: its duration, times jobs per GPU if there are more jobs than GPUs
// (Shockwave, NSDI'23). A job with profiles: as Sia's authors define it for several types of GPU
// (SOSP'23, section 5.5). With n jobs in the cluster on average over the job's life, it is played
// alone, under the same policy, on the n-th part of the cluster's GPUs, all of one type; the ratio
// of its completion time to its fair time is the mean of the ratios to these times, weighted by the
// GPUs of each type. Between whole GPUs times are interpolated. A job that the policy does not
// resize holds what it requested for a part of the time, if that is more than its share.
//
// - Threads: none.
#pragma once

#include "lab/simulator.h"

namespace swell::lab {

// Sets `fair_s` of each job of `outcome`, which is how `policy` played the trace. For jobs with
// profiles this plays about as many small runs as the trace has jobs.
Status AddFairTimes(const Trace& trace,
                    const ProfileLibrary& profiles,
                    const PolicyKind& policy,
                    const RunOptions& options,
                    RunOutcome& outcome);

}  // namespace swell::lab
