// JobDependents: writes the objects that a job's pods need beside services (JobKind::Dependents).
// Missing objects are created, the job's own are updated, and objects of other owners are an error.
// - Threads: core executor only. `client` outlives the call.
#pragma once

#include <functional>
#include <vector>

#include "base/status.h"
#include "kube/client/client.h"

namespace swell::controllers {

// `job` owns them from then on. kAlreadyExists names an object that belongs to another one.
void PutDependents(client::Client& client,
                   const json::Value& job,
                   std::vector<json::Value> dependents,
                   std::function<void(const Status&)> done);

}  // namespace swell::controllers
