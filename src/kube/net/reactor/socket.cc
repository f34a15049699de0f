#include "kube/net/reactor/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "base/host_port.h"
#include "base/strings.h"

namespace swell::net {
namespace {

constexpr int kBacklog = 1024;

void SetInt(int fd, int level, int option, int value) {
  // Tuning only: a kernel without the option still serves correctly.
  (void)setsockopt(fd, level, option, &value, sizeof(value));
}

void TuneTcp(int fd) {
  SetInt(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  SetInt(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetInt(fd, IPPROTO_TCP, TCP_KEEPIDLE, 30);
  SetInt(fd, IPPROTO_TCP, TCP_KEEPINTVL, 15);
  SetInt(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

std::string Printed(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    return StrCat(text, ":", static_cast<int>(ntohs(v4.sin_port)));
  }
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
    std::string host = text;
    // A dual-stack listener shows IPv4 peers as ::ffff:1.2.3.4; people know them as 1.2.3.4.
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      return StrCat(host.substr(host.rfind(':') + 1), ":", static_cast<int>(ntohs(v6.sin6_port)));
    }
    return StrCat("[", host, "]:", static_cast<int>(ntohs(v6.sin6_port)));
  }
  return "unix";
}

Result<UniqueFd> NewSocket(int family, std::string_view what) {
  UniqueFd fd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoStatus(errno, StrCat("socket for ", what));
  return fd;
}

Result<Listener> BindAndListen(const SocketAddress& address, const std::string& what) {
  const auto* raw = reinterpret_cast<const sockaddr*>(address.bytes.data());
  SWELL_ASSIGN_OR_RETURN(UniqueFd fd, NewSocket(raw->sa_family, what));
  if (raw->sa_family != AF_UNIX) SetInt(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (raw->sa_family == AF_INET6) SetInt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (bind(fd.get(), raw, static_cast<socklen_t>(address.bytes.size())) != 0) {
    return ErrnoStatus(errno, StrCat("bind to ", what));
  }
  if (listen(fd.get(), kBacklog) != 0) return ErrnoStatus(errno, StrCat("listen on ", what));
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return ErrnoStatus(errno, StrCat("address of ", what));
  }
  Listener listener;
  listener.fd = std::move(fd);
  if (bound.ss_family == AF_INET) {
    listener.port = ntohs(reinterpret_cast<const sockaddr_in&>(bound).sin_port);
  } else if (bound.ss_family == AF_INET6) {
    listener.port = ntohs(reinterpret_cast<const sockaddr_in6&>(bound).sin6_port);
  }
  return listener;
}

Result<Listener> ListenOnUnix(const std::string& path) {
  SWELL_ASSIGN_OR_RETURN(SocketAddress address, UnixAddress(path));
  struct stat info {};
  if (lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode)) {
    // Only a dead server's socket is replaced: a live one accepts.
    SWELL_ASSIGN_OR_RETURN(UniqueFd probe, NewSocket(AF_UNIX, path));
    const auto* raw = reinterpret_cast<const sockaddr*>(address.bytes.data());
    if (connect(probe.get(), raw, static_cast<socklen_t>(address.bytes.size())) == 0 ||
        errno == EAGAIN) {
      return Status(Code::kConflict, StrCat("listen on ", path, ": another server is listening"));
    }
    if (unlink(path.c_str()) != 0) return ErrnoStatus(errno, StrCat("removal of ", path));
  }
  SWELL_ASSIGN_OR_RETURN(Listener listener, BindAndListen(address, path));
  listener.unix_path = path;
  if (chmod(path.c_str(), 0600) != 0) return ErrnoStatus(errno, StrCat("chmod of ", path));
  return listener;
}

}  // namespace

Result<Listener> ListenOn(const std::string& address) {
  if (address.substr(0, 5) == "unix:") {
    std::string path = address.substr(5);
    if (path.substr(0, 2) == "//") path = path.substr(2);
    return ListenOnUnix(path);
  }
  size_t colon = address.rfind(':');
  std::string host(Unbracketed(std::string_view(address).substr(0, colon)));
  auto port = colon == std::string::npos ? std::nullopt
                                         : ParseUint(std::string_view(address).substr(colon + 1));
  if (!port || *port > 65535) {
    return Status(Code::kBadRequest,
                  StrCat("listen address ", Quote(address), " is not host:port or unix:/path"));
  }
  auto number = static_cast<uint16_t>(*port);
  if (host == "localhost") host = "127.0.0.1";
  if (host.empty()) {
    SWELL_ASSIGN_OR_RETURN(SocketAddress any6, LiteralAddress("::", number));
    auto listener = BindAndListen(any6, address);
    if (listener.ok()) return listener;
    host = "0.0.0.0";  // a kernel without IPv6
  }
  auto literal = LiteralAddress(host, number);
  if (!literal.ok()) {
    return Status(Code::kBadRequest,
                  StrCat("listen address ", Quote(address), ": host is not an IP address"));
  }
  return BindAndListen(*literal, address);
}

Result<Accepted> AcceptFrom(const Listener& listener) {
  sockaddr_storage peer{};
  socklen_t size = sizeof(peer);
  Accepted out;
  out.fd = UniqueFd(accept4(listener.fd.get(), reinterpret_cast<sockaddr*>(&peer), &size,
                            SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!out.fd.valid()) {
    switch (errno) {
      case EAGAIN:
        return Status(Code::kTimeout, "nobody is waiting");
      case EMFILE:
      case ENFILE:
      case ENOBUFS:
      case ENOMEM:
        return Status(Code::kNoSpace, StrCat("accept: ", std::strerror(errno)));
      default:
        return ErrnoStatus(errno, "accept");  // of this one connection only
    }
  }
  if (listener.unix_path.empty()) {
    TuneTcp(out.fd.get());
    out.remote = Printed(peer);
  } else {
    out.remote = "unix";
    ucred credentials{};
    socklen_t length = sizeof(credentials);
    if (getsockopt(out.fd.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0) {
      out.uid = credentials.uid;
    }
  }
  return out;
}

Result<UniqueFd> ConnectTo(const SocketAddress& address) {
  const auto* raw = reinterpret_cast<const sockaddr*>(address.bytes.data());
  SWELL_ASSIGN_OR_RETURN(UniqueFd fd, NewSocket(raw->sa_family, "connection"));
  if (raw->sa_family != AF_UNIX) TuneTcp(fd.get());
  if (connect(fd.get(), raw, static_cast<socklen_t>(address.bytes.size())) != 0 &&
      errno != EINPROGRESS) {
    return Status(Code::kUnavailable, StrCat("connect: ", std::strerror(errno)));
  }
  return fd;
}

Result<SocketAddress> UnixAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return Status(Code::kBadRequest, StrCat("socket path ", Quote(path), " must have 1 to ",
                                            sizeof(address.sun_path) - 1, " bytes"));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return SocketAddress{std::string(reinterpret_cast<const char*>(&address), sizeof(address))};
}

Result<SocketAddress> LiteralAddress(const std::string& host, uint16_t port) {
  sockaddr_in v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    return SocketAddress{std::string(reinterpret_cast<const char*>(&v4), sizeof(v4))};
  }
  sockaddr_in6 v6{};
  if (inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    return SocketAddress{std::string(reinterpret_cast<const char*>(&v6), sizeof(v6))};
  }
  return Status(Code::kNotFound, StrCat(Quote(host), " is not an IP address"));
}

Status ConnectOutcome(int fd) {
  int error = 0;
  socklen_t size = sizeof(error);
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error == 0) return Status::Ok();
  return Status(Code::kUnavailable, StrCat("connect: ", std::strerror(error)));
}

}  // namespace swell::net
