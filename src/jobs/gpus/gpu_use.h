// GpuUse of a pod: what the GPUs that it holds are used for, from its status and from what it
// reports of its training; since when it holds them, until when, and what was lost with it.
// - Threads: pure functions; a LossInPlace belongs to one thread.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "json/value.h"
#include "kube/client/usage_record.h"

namespace swell::jobs {

// `gang_runs`: all members that its gang needs run.
client::GpuUse GpuUseOf(const json::Value& pod, bool gang_runs);
// "namespace/job": what owns the pod, or the pod itself.
std::string JobOfPod(const json::Value& pod);
// `now` where the pod does not say since when.
WallTime BoundAt(const json::Value& pod, WallTime now);
// When the last of its containers ended; `now` where one does not say so.
WallTime EndedAt(const json::Value& pod, WallTime now);
// The GPUs that a pod, or a pod template, requests as whole GPUs or as parts of GPUs.
double GpusAskedBy(const json::Value& pod);

struct FailedRun {
  WallTime from, until;
};
// kLast: of containers that have ended. kEarlier: of containers that were started again.
enum class Runs { kLast, kEarlier };
// The latest failed run of a container of the pod.
std::optional<FailedRun> LatestFailure(const json::Value& pod, Runs among);

// GPU-seconds of work that nobody has saved, of a pod that fails or is preempted; 0 of any other. A
// pod that failed by itself loses what its last run did since its last checkpoint. A victim loses
// what it had not saved when it got its notice, unless it has saved since. Members of an elastic
// job that use the SDK lose nothing, since the others have their state in memory.
double LostGpuSeconds(const json::Value& pod, double gpus, WallTime end);

// The losses of containers that fail and start again in their pod. Each run counts once. A script
// that uses the SDK loses nothing here, since its next process finds the state in memory.
class LossInPlace {
 public:
  explicit LossInPlace(WallTime since = WallTime()) : until_(since) {}
  // The GPU-seconds lost since the last call.
  double Take(const json::Value& pod, double gpus);

 private:
  WallTime until_;  // runs that ended up to here have been counted
};

}  // namespace swell::jobs
