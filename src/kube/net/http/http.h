// HTTP as values: requests, responses, headers and URLs. No I/O.
// - Threads: plain values and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/net/connection/chunk.h"
#include "kube/net/tls/peer_identity.h"

namespace swell::net {

struct Header {
  std::string name;
  std::string value;
  bool operator==(const Header&) const = default;
};
using Headers = std::vector<Header>;

struct HttpRequest {
  std::string method;
  std::string target;  // as sent: "/api/v1/pods?watch=1"
  std::string path;    // the part before '?', not percent-decoded
  std::string query;   // the part after '?', raw
  Headers headers;
  std::string body;
  PeerIdentity peer;
  // Names the client for fair sharing: a certificate, a token or an address. It is known before
  // authentication. No client can use up another's share by it: a false credential is refused.
  std::string client;
  bool urgent = false;  // a client sends it before others that wait for a connection
};

struct HttpResponse {
  int status = 200;
  Headers headers;
  Body body;
};

// The first header of that name in any case, or null.
const std::string* FindHeader(const Headers& headers, std::string_view name);
// True when any header of that name lists `token` (comma separated, any case).
bool HeaderHasToken(const Headers& headers, std::string_view name, std::string_view token);
bool EqualsIgnoreCase(std::string_view a, std::string_view b);
// RFC 9110 token: a legal method or header name.
bool IsToken(std::string_view text);

struct Url {
  std::string scheme;  // http, https or unix
  std::string host;    // without brackets; for unix the socket's path
  uint16_t port = 0;
  std::string path;  // "" or "/prefix", without a slash at the end

  // What the Host header says.
  std::string Authority() const;
};
// "https://host:6443/prefix", "http://[::1]:80", "unix:///run/swell.sock". No query, no user.
Result<Url> ParseUrl(std::string_view text);

std::string_view ReasonPhrase(int status);

// metav1.Status as the body of an error answer. The HTTP status is the code's unless given.
HttpResponse StatusResponse(const Status& status, int http_status = 0);

}  // namespace swell::net
