// RuntimeAuthor: who may write a TrainingRuntime that others' TrainJobs name.
//
// What the runtime says is what these jobs run, with their submitters' ids. So nobody writes it who
// could not act in their pods.
//
// - Threads: core executor only.
#pragma once

#include "base/status.h"
#include "kube/apiserver/hooks.h"

namespace swell::apiserver {

// `old` is null where the runtime is new. Administrators may write any.
Status CheckRuntimeAuthor(const Admission& admission,
                          const json::Value& runtime,
                          const json::Value* old);

}  // namespace swell::apiserver
