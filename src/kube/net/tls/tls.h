// TLS: what a server or client needs to know, and making certificates (EC P-256, OpenSSL 3).
//
// TLS 1.2 and newer, sessions are resumed, HTTP/1.1 is the only protocol offered.
//
// - Threads: pure functions; a TlsContext may be shared by connections of one reactor.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace swell::net {

struct TlsServerConfig {
  std::string cert_pem;  // leaf first, then intermediates
  std::string key_pem;
  // When set, clients are asked for a certificate; one that these do not vouch for ends the
  // handshake, none at all is fine (the peer is then anonymous).
  std::string client_ca_pem;
};

struct TlsClientConfig {
  std::string ca_pem;  // empty: the system's trust store
  std::string cert_pem;
  std::string key_pem;
  bool insecure_skip_verify = false;
  std::string server_name;  // expected in the certificate; empty: the URL's host
};

// Parsed keys and certificates, ready for connections.
class TlsContext;
Result<std::shared_ptr<TlsContext>> MakeServerContext(const TlsServerConfig& config);
Result<std::shared_ptr<TlsContext>> MakeClientContext(const TlsClientConfig& config);

struct CertificatePair {
  std::string cert_pem;
  std::string key_pem;
};

struct CertSpec {
  std::string common_name;
  std::vector<std::string> organizations;
  std::vector<std::string> dns_names;
  std::vector<std::string> ip_addresses;
  bool server = false;  // extended key usages
  bool client = false;
  WallTime not_before;
  Duration validity = std::chrono::hours(24 * 365);
};

Result<CertificatePair> GenerateCa(const std::string& common_name,
                                   WallTime not_before,
                                   Duration validity = std::chrono::hours(24 * 3650));
Result<CertificatePair> IssueCert(const CertificatePair& ca, const CertSpec& spec);

// A certificate (PEM) for a client that asks by a request (PKCS #10, PEM): names and key are the
// request's, and what the key may be used for beside telling who the client is.
struct ClientTerms {
  bool digital_signature = false;
  bool key_encipherment = false;
  WallTime not_before;
  Duration validity = std::chrono::hours(24 * 365);
};
Result<std::string> IssueClientCert(const CertificatePair& ca,
                                    const std::string& request_pem,
                                    const ClientTerms& terms);
// The subject that a request names, and the organizations of which it is a member.
struct RequestedNames {
  std::string common_name;  // the first one, as the server reads it in a certificate
  std::vector<std::string> organizations;
};
Result<RequestedNames> NamesInRequest(const std::string& request_pem);

// What a certificate says; the first one of the PEM text.
struct CertificateInfo {
  std::string common_name;
  std::vector<std::string> organizations;
  WallTime not_before;
  WallTime not_after;
};
Result<CertificateInfo> DescribeCertificate(std::string_view cert_pem);

std::string Sha256Hex(std::string_view bytes);

}  // namespace swell::net
