// WebhookAuthority: whom a cluster trusts an admission webhook by, as the data of a Secret that all
// replicas share, and how one authority follows another before its time is over.
//
//   tls.crt, tls.key     the authority that issues the replicas' certificates
//   next.crt, next.key   the one that follows it: trusted already, but issues nothing yet
//   previous.crt         the one that it followed: trusted as long as it is good
//
// A successor is made two months before the end and takes over two days later, when every replica
// has long put it into the caBundle; so at no time is anybody's certificate of an authority that
// the API server does not know. Only where an authority is missing, broken or about to end is it
// replaced at once.
//
// - Threads: plain values and pure functions, but for the keys that are drawn.
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

// What the authority is to be now; nullopt: what it is.
Result<std::optional<WebhookAuthority>> Renew(const WebhookAuthority& authority,
                                              const std::string& common_name,
                                              WallTime now);

}  // namespace swell::edge
