#include "ops/pages/pages_certificate.h"

#include "base/file.h"
#include "ops/install/install_objects.h"
#include "ops/install/service_certificate.h"
#include "ops/nodes/node_address.h"

namespace swell::ops {
namespace {

constexpr size_t kFileBytesMax = 1 << 20;

}  // namespace

Result<net::CertificatePair> PagesCertificate(const CertificateFiles& files,
                                              const std::string& ns,
                                              const Clock& clock) {
  if (!files.cert.empty()) {
    net::CertificatePair pair;
    SWELL_ASSIGN_OR_RETURN(pair.cert_pem, ReadFile(files.cert, kFileBytesMax));
    SWELL_ASSIGN_OR_RETURN(pair.key_pem, ReadFile(files.key, kFileBytesMax));
    return pair;
  }
  net::CertSpec spec = CertificateOfService(kPagesName, ns, clock.Now());
  spec.dns_names.push_back(HostName());
  SWELL_ASSIGN_OR_RETURN(const auto ca, net::GenerateCa(kPagesName, spec.not_before));
  return net::IssueCert(ca, spec);
}

}  // namespace swell::ops
