// Certificates of clients, as the authority of an embedded cluster issues them: for the API server,
// which makes them for users, and for the controller that answers signing requests.
// - Threads: pure functions; what they return runs on the core thread.
// - Ownership: authority and clock outlive what is returned.
#pragma once

#include "base/clock.h"
#include "kube/apiserver/api_server.h"
#include "kube/controllers/cluster/certificate_signer.h"
#include "kube/net/tls/tls.h"

namespace swell::ops {

// Options::issue_certificate and Options::requested_subject.
void AddCertificates(apiserver::Options& options,
                     const net::CertificatePair& authority,
                     const Clock& clock);
controllers::SignClientCertificate SignerOf(const net::CertificatePair& authority,
                                            const Clock& clock);

}  // namespace swell::ops
