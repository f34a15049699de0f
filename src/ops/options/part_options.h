// What the parts of an embedded cluster are told, as the flags of `swell up` say it.
// - Threads: the core thread; ServerOptionsOf reads the file of --token-auth-file.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "kube/apiserver/api_server.h"
#include "kube/node/runtime/service_route.h"
#include "manager/manager.h"
#include "ops/options/cluster_options.h"

namespace swell::ops {

// What other parts of the cluster do for the server is left empty.
Result<apiserver::Options> ServerOptionsOf(const ClusterOptions& cluster);
// What other parts of the cluster do for the controllers is left empty.
manager::ManagerOptions ManagerOptionsOf(const ClusterOptions& cluster);

// Where this machine serves node ports and services of type LoadBalancer.
node::MachineAddresses MachineAddressesOf(const ClusterOptions& cluster);
// The names and addresses that the server's certificate has. `gateway`: where pods reach this
// machine; empty if they have no network of their own.
std::vector<std::string> CertificateHosts(const ClusterOptions& cluster,
                                          const std::string& gateway);
// The variables by which programs in pods find the API server.
std::vector<std::pair<std::string, std::string>> ServerVariables(const std::string& host,
                                                                 uint16_t port);

}  // namespace swell::ops
