// CertificateOfService: what the certificate of a port says that a Service of the cluster leads to.
// - Threads: pure function.
#pragma once

#include <string>

#include "base/clock.h"
#include "kube/net/tls/tls.h"

namespace swell::ops {

// For the Service's names, and for this machine's loopback. Machines whose clocks are behind by
// minutes accept it.
net::CertSpec CertificateOfService(const std::string& service, const std::string& ns, WallTime now);

}  // namespace swell::ops
