// PagesCertificate: what the pages of `swell controller` show to browsers that come by TLS.
// - Threads: main thread; reads files.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "kube/net/tls/tls.h"

namespace swell::ops {

// Both or neither; neither: a certificate is made.
struct CertificateFiles {
  std::string cert;
  std::string key;
};

// The certificate of the files, or one that no browser knows yet and that lasts as long as this
// process, for the pages' Service in `ns` and for this machine.
Result<net::CertificatePair> PagesCertificate(const CertificateFiles& files,
                                              const std::string& ns,
                                              const Clock& clock);

}  // namespace swell::ops
