#include "ops/nodes/node_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/strings.h"
#include "kube/net/http/http.h"

namespace swell::ops {

// The kernel's choice of a source address: connecting a datagram socket sends nothing.
std::string AddressTowards(const std::string& url) {
  auto parsed = net::ParseUrl(url);
  if (!parsed.ok()) return {};
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(parsed->host.c_str(), "9", &hints, &found) != 0) return {};
  std::string address;
  int fd = ::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (fd >= 0 && ::connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0) {
    char text[NI_MAXHOST] = {};
    if (::getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text, sizeof text, nullptr, 0,
                      NI_NUMERICHOST) == 0) {
      address = text;
    }
  }
  if (fd >= 0) ::close(fd);
  ::freeaddrinfo(found);
  bool loopback = address.starts_with("127.") || address == "::1";
  return loopback ? std::string() : address;
}

std::string HostName() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  return ToLower(name);
}

}  // namespace swell::ops
