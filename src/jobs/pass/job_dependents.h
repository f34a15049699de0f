// JobDependents: writes the objects that a job's pods need beside services (JobKind::Dependents).
// Missing objects are created, the job's own are updated, and objects of other owners are an error.
// An immutable object, whose name must be the job's alone, is made once and never read. What gives
// pods rights (ServiceAccount, Role, RoleBinding) is left out where the controller has no right to
// give them: pods then do without.
// - Threads: core executor only. `client` outlives the call.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "kube/client/client.h"

namespace swell::jobs {

// `job` owns them from then on. kAlreadyExists names an object that belongs to another one.
// `done` also gets the names of service accounts that could not be made.
void PutDependents(client::Client& client,
                   const json::Value& job,
                   std::vector<json::Value> dependents,
                   std::function<void(const Status&, const std::set<std::string>&)> done);

}  // namespace swell::jobs
