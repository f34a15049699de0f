// The nodes that an earlier start of `swell up` left in the store.
// - Threads: the client's executor.
#pragma once

#include <vector>

#include "kube/client/client.h"
#include "kube/node/spec/node_config.h"

namespace swell::ops {

// Gives the nodes the mark by which a later start knows them.
void MarkNodes(std::vector<node::NodeConfig>& nodes);

// Deletes the marked nodes that are not among these. Otherwise pods would be placed there until
// their leases expire.
void ForgetOldNodes(client::Client& client, const std::vector<node::NodeConfig>& nodes);

}  // namespace swell::ops
