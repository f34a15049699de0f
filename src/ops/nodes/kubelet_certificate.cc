#include "ops/nodes/kubelet_certificate.h"

#include <set>
#include <string>

#include "base/strings.h"

namespace swell::ops {

Result<net::CertificatePair> MakeKubeletCertificate(const std::vector<node::NodeConfig>& nodes,
                                                    const Clock& clock) {
  net::CertSpec spec;
  spec.common_name = StrCat("system:node:", nodes.front().name);
  spec.organizations = {"system:nodes"};
  spec.server = true;
  spec.not_before = clock.Now() - std::chrono::minutes(5);
  std::set<std::string> addresses;
  for (const node::NodeConfig& node : nodes) {
    spec.dns_names.push_back(node.name);
    addresses.insert(node.internal_ip);
  }
  spec.ip_addresses.assign(addresses.begin(), addresses.end());
  SWELL_ASSIGN_OR_RETURN(const net::CertificatePair ca,
                         net::GenerateCa("swell-agent", spec.not_before));
  return net::IssueCert(ca, spec);
}

}  // namespace swell::ops
