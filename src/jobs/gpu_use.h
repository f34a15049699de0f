// GpuUse of a pod: what the GPUs that it holds are used for, from its status and from what it
// reports of its training.
// - Threads: pure functions.
#pragma once

#include "json/value.h"
#include "kube/client/usage_record.h"

namespace swell::controllers {

// `gang_runs`: all members that its gang needs run.
client::GpuUse GpuUseOf(const json::Value& pod, bool gang_runs);
// "namespace/job": what owns the pod, or the pod itself.
std::string JobOfPod(const json::Value& pod);

}  // namespace swell::controllers
