#include "ops/access/client_certificates.h"

#include <utility>

namespace swell::ops {
namespace {

// Clients' clocks may be behind.
constexpr Duration kBackdated = std::chrono::minutes(5);

}  // namespace

void AddCertificates(apiserver::Options& options,
                     const net::CertificatePair& authority,
                     const Clock& clock) {
  options.issue_certificate = [&authority, &clock](
                                  const std::string& name, const std::string& organization,
                                  Duration validity) -> Result<apiserver::CertificateAndKey> {
    net::CertSpec spec;
    spec.common_name = name;
    spec.organizations = {organization};
    spec.client = true;
    spec.not_before = clock.Now() - kBackdated;
    spec.validity = validity;
    SWELL_ASSIGN_OR_RETURN(net::CertificatePair pair, net::IssueCert(authority, spec));
    return apiserver::CertificateAndKey{std::move(pair.cert_pem), std::move(pair.key_pem)};
  };
  options.requested_subject = [](const std::string& pem) -> Result<apiserver::CertificateSubject> {
    SWELL_ASSIGN_OR_RETURN(net::RequestedNames names, net::NamesInRequest(pem));
    return apiserver::CertificateSubject{std::move(names.common_name),
                                         std::move(names.organizations)};
  };
}

controllers::SignClientCertificate SignerOf(const net::CertificatePair& authority,
                                            const Clock& clock) {
  return [&authority, &clock](const controllers::ClientCertificateRequest& request) {
    return net::IssueClientCert(authority, request.pem,
                                {.digital_signature = request.digital_signature,
                                 .key_encipherment = request.key_encipherment,
                                 .not_before = clock.Now() - kBackdated,
                                 .validity = request.validity});
  };
}

}  // namespace swell::ops
