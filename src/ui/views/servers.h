// Servers of models that are not jobs: the Deployments of `arena serve`, as rows and pages of
// workloads. And where any workload answers: the Services that lead to its pods.
// - Threads: pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "cli/views/job_view.h"
#include "json/value.h"
#include "ui/views/views.h"

namespace swell::ui {

// What their views are made of.
KindSet ServerKinds();
bool IsServer(const cli::JobView& job);
// As if they were jobs. `ns` empty: of all namespaces. `partial` becomes true when some are left
// out.
std::vector<cli::JobView> ServersOf(const ViewInput& input, bool& partial, std::string_view ns);
// A row for each Service that the user may see, with its ports.
json::Array AddressesOf(const cli::JobView& job, const ViewInput& input);

}  // namespace swell::ui
