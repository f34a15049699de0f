// PeerIdentity: the identity of the other end of a connection.
// - Threads: a plain value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace swell::net {

// As far as the connection itself proves it.
struct PeerIdentity {
  bool tls = false;
  std::string remote;                      // "127.0.0.1:4242", "[::1]:4242" or "unix"
  int64_t uid = -1;                        // unix sockets only: the peer's user
  std::string common_name;                 // of a verified client certificate, else empty
  std::vector<std::string> organizations;  // likewise
};

}  // namespace swell::net
