// What the nodes of `swell agent` show to an API server that asks them for logs and commands.
// - Threads: pure function.
#pragma once

#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "kube/net/tls/tls.h"
#include "kube/node/spec/node_config.h"

namespace swell::ops {

// One certificate for the names and addresses of all nodes. Nobody keeps its authority, since API
// servers check a node's certificate only if they are given its authority. Needs at least one node.
Result<net::CertificatePair> MakeKubeletCertificate(const std::vector<node::NodeConfig>& nodes,
                                                    const Clock& clock);

}  // namespace swell::ops
