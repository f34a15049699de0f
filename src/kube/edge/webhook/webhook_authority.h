// WebhookAuthority: the certificate authority of an admission webhook, as the data of a Secret that
// all replicas share, and its rotation.
//
//   tls.crt, tls.key     the authority that issues the replicas' certificates
//   next.crt, next.key   its successor: trusted already, but issues nothing yet
//   previous.crt         its predecessor: trusted until it expires
//
// A successor is made two months before the authority expires and takes over two days later, when
// every replica has put it into the caBundle. So the API server always knows the authority of every
// replica's certificate. An authority that is missing, broken or about to expire is replaced at
// once.
//
// - Threads: plain values and pure functions, except that keys are random.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "json/value.h"
#include "kube/net/tls/tls.h"

namespace swell::edge {

struct WebhookAuthority {
  net::CertificatePair current;
  std::optional<net::CertificatePair> next;
  std::string previous;  // certificate; empty: none

  // The certificates that are to be trusted, as one PEM text.
  std::string Bundle() const;
  // The Secret's data, base64 and all.
  json::Object Data() const;

  // What can be read of the data; an authority without a readable certificate and key is left out.
  static WebhookAuthority Read(const json::Value& data);
};

// The authority to use from now on; nullopt: the present one.
Result<std::optional<WebhookAuthority>> Renew(const WebhookAuthority& authority,
                                              const std::string& common_name,
                                              WallTime now);

}  // namespace swell::edge
