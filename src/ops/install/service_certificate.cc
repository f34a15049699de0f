#include "ops/install/service_certificate.h"

#include "base/strings.h"

namespace swell::ops {

net::CertSpec CertificateOfService(const std::string& service,
                                   const std::string& ns,
                                   WallTime now) {
  const std::string name = StrCat(service, ".", ns, ".svc");
  net::CertSpec spec;
  spec.common_name = service;
  spec.dns_names = {"localhost", service, StrCat(service, ".", ns), name,
                    StrCat(name, ".cluster.local")};
  spec.ip_addresses = {"127.0.0.1"};
  spec.server = true;
  spec.not_before = now - std::chrono::minutes(5);
  return spec;
}

}  // namespace swell::ops
