// RuntimePatches: what a TrainJob changes in the pods of its runtime, in spec.podSpecOverrides
// (Kubeflow's Trainer 2.0), spec.podTemplateOverrides (2.1) or spec.runtimePatches (2.2).
// - Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "json/value.h"

namespace swell::jobs {

struct RuntimePatch {
  std::string path;    // in the job: "spec.podTemplateOverrides[0]"
  json::Value change;  // a part of a pod's template: some of metadata and spec
};

// In the order in which they apply. `node`: the runtime's job that is run, and its container.
// kInvalid names the first field that cannot be followed.
Result<std::vector<RuntimePatch>> ReadRuntimePatches(const json::Value& job_spec,
                                                     std::string_view node);
// kInvalid names a container that the template has not.
Status CheckContainersOf(const RuntimePatch& patch, const json::Value& pod_template);
// What a pod lists by name or path is joined by it; of the rest the patch's value holds.
Status ApplyRuntimePatch(const RuntimePatch& patch, json::Value& pod_template);

}  // namespace swell::jobs
