// SampleCluster: the numbers of one moment, as series of the history.
//
//   gpu_total gpu_held gpu_utilized {pool}
//   queue_length queue_gpus running_jobs       and how long those wait that wait now:
//   queue_wait_p50_seconds queue_wait_p95_seconds
//   preemptions lost_gpu_seconds               counters since the account of use began
//   started_jobs started_wait_seconds {project}   likewise: their waits until they had places
//   preemptions_by_rule {rule}                    counter since the history began
//   project_gpu_held _utilized _quota _fair_share _requested {project}
//                                              held and utilized also for work without a project
//                                              ("")
//   node_gpu_held node_gpu_utilized {node}
//   job_members job_throughput job_loss job_step job_progress {namespace, job}
//
// A GPU that is really there is utilized as its driver says; a virtual one as its pod uses the
// processors that it asked for.
//
// - Threads: pure functions over the pages' own state.
#pragma once

#include <vector>

#include "ui/history/history.h"
#include "ui/state/cluster_state.h"
#include "ui/state/rights.h"

namespace swell::ui {

std::vector<Sample> SampleCluster(const ClusterState& state, WallTime now);

// Whether the user may see the series.
bool MaySee(const SeriesName& series, const Rights& rights);

}  // namespace swell::ui
