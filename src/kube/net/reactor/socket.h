// Sockets: listening, accepting and connecting. Internal to net.
// Everything is non-blocking and close-on-exec; TCP sockets have TCP_NODELAY and keep-alive probes.
// - Threads: pure functions over the operating system.
#pragma once

#include <string>

#include "base/unique_fd.h"
#include "kube/net/reactor/reactor.h"

namespace swell::net {

struct Listener {
  UniqueFd fd;
  uint16_t port = 0;
  std::string unix_path;  // to unlink at the end
};
Result<Listener> ListenOn(const std::string& address);

struct Accepted {
  UniqueFd fd;
  std::string remote;
  int64_t uid = -1;
};
// kTimeout when nobody is waiting; kNoSpace when descriptors or memory ran out.
Result<Accepted> AcceptFrom(const Listener& listener);

// Begins to connect; the socket becomes writable when that is decided.
Result<UniqueFd> ConnectTo(const SocketAddress& address);
Result<SocketAddress> UnixAddress(const std::string& path);
// A literal IP address, without any look-up. kNotFound when `host` is not an address.
Result<SocketAddress> LiteralAddress(const std::string& host, uint16_t port);
// The outcome of a connect that has been decided.
Status ConnectOutcome(int fd);

}  // namespace swell::net
