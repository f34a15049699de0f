// ClusterResources: every stored resource of the cluster, for controllers that handle all kinds.
// - Threads: core executor only. The scheme outlives the results.
#pragma once

#include <vector>

#include "kube/api/schema/scheme.h"
#include "kube/client/client.h"

namespace swell::controllers {

// Events are many, own nothing and expire by themselves.
enum class Events { kLeftOut, kIncluded };
// One version of every stored resource that can be listed and deleted, core first.
std::vector<client::Resource> ClusterResources(const api::Scheme& scheme, Events events);

// The resource of an owner reference; nullopt when the cluster has no such kind.
std::optional<client::Resource> ResourceOfKind(const api::Scheme& scheme,
                                               std::string_view api_version,
                                               std::string_view kind);

}  // namespace swell::controllers
