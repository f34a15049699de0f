// Workloads: those that Kubernetes' own controllers run, by the names that people gave them. Each
// of their pods waits and runs for itself: they are not jobs.
// - Threads: one thread; blocks on the session's loop.
#pragma once

#include <string_view>
#include <vector>

#include "cli/api.h"

namespace swell::cli {

// The label of a server of `arena serve`. Each version of it is a Deployment with a longer name.
inline constexpr std::string_view kServingName = "servingName";

struct Workload {
  const Resource* resource;
  std::string_view kind;  // Deployment
  json::SharedValue object;
};

// Deployments, StatefulSets and DaemonSets of that name; if there are none, the versions of the
// server of that name. Empty also where nobody may ask.
std::vector<Workload> WorkloadsNamed(Api& api, std::string_view ns, std::string_view name);

}  // namespace swell::cli
