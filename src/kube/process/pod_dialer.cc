#include "kube/process/pod_dialer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/file.h"
#include "base/host_port.h"
#include "base/strings.h"
#include "base/unique_fd.h"

namespace swell::process {
namespace {

constexpr Duration kDialTimeout = std::chrono::seconds(5);

// A socket belongs to the network it is made in, whatever its thread joins later.
Result<UniqueFd> SocketIn(const std::string& netns, int family) {
  constexpr int kType = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  if (netns.empty()) {
    UniqueFd fd(::socket(family, kType, 0));
    if (!fd.valid()) return ErrnoStatus(errno, "socket");
    return fd;
  }
  const UniqueFd there(::open(netns.c_str(), O_RDONLY | O_CLOEXEC));
  const UniqueFd here(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!there.valid() || !here.valid() || ::setns(there.get(), CLONE_NEWNET) != 0) {
    return ErrnoStatus(errno, "enter the pod's network");
  }
  UniqueFd fd(::socket(family, kType, 0));
  const int error = errno;
  SWELL_CHECK_MSG(::setns(here.get(), CLONE_NEWNET) == 0, "cannot leave a pod's network");
  if (!fd.valid()) return ErrnoStatus(error, "socket");
  return fd;
}

// "host", as an address that connect takes, with its length; 0: not an address.
socklen_t ToSockaddr(const std::string& host, uint16_t port, sockaddr_storage* out) {
  auto* four = reinterpret_cast<sockaddr_in*>(out);
  auto* six = reinterpret_cast<sockaddr_in6*>(out);
  *out = {};
  if (::inet_pton(AF_INET, host.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    return sizeof *four;
  }
  if (::inet_pton(AF_INET6, host.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    return sizeof *six;
  }
  return 0;
}

}  // namespace

struct PodDialer::Attempt {
  std::string netns;  // empty: the host's
  std::vector<std::string> hosts;
  size_t next = 0;
  uint16_t port = 0;
  UniqueFd fd;
  std::unique_ptr<net::FdWatch> watch;
  TimerId timer = kNoTimer;
  std::vector<std::string> failures;
  Done done;
};

PodDialer::PodDialer(net::Reactor& reactor, FdStreams& streams)
    : reactor_(reactor), streams_(streams) {}

PodDialer::~PodDialer() = default;

void PodDialer::Dial(const std::string& netns,
                     std::vector<std::string> hosts,
                     uint16_t port,
                     Done done) {
  auto attempt = std::make_shared<Attempt>();
  attempt->netns = netns;
  attempt->hosts = std::move(hosts);
  attempt->port = port;
  attempt->done = std::move(done);
  attempts_.insert(attempt);
  TryNext(attempt);
}

void PodDialer::TryNext(const std::shared_ptr<Attempt>& attempt) {
  reactor_.Cancel(std::exchange(attempt->timer, kNoTimer));
  attempt->watch.reset();
  while (attempt->next < attempt->hosts.size()) {
    const std::string& host = attempt->hosts[attempt->next++];
    sockaddr_storage address;
    const socklen_t size = ToSockaddr(host, attempt->port, &address);
    if (size == 0) continue;
    auto fd = SocketIn(attempt->netns, address.ss_family);
    if (!fd.ok()) {
      attempt->failures.push_back(fd.status().message());
      continue;
    }
    attempt->fd = std::move(*fd);
    if (::connect(attempt->fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 &&
        errno != EINPROGRESS) {
      attempt->failures.push_back(StrCat("dial tcp ", Bracketed(host), ":", attempt->port,
                                         ": connect: ", ToLower(std::strerror(errno))));
      continue;
    }
    std::weak_ptr<Attempt> weak = attempt;
    auto watch = reactor_.Watch(attempt->fd.get(), [this, weak](net::Readiness) {
      if (auto alive = weak.lock()) OnConnected(alive);
    });
    if (!watch.ok()) continue;
    attempt->watch = std::move(*watch);
    attempt->watch->SetInterest(net::Interest::kWrite);
    attempt->timer = reactor_.After(kDialTimeout, [this, weak] {
      auto late = weak.lock();
      if (!late) return;
      late->timer = kNoTimer;
      late->failures.push_back(StrCat("dial tcp port ", late->port, ": i/o timeout"));
      TryNext(late);
    });
    return;
  }
  attempts_.erase(attempt);
  attempt->done(
      Status(Code::kUnavailable, StrCat("failed to connect to localhost:", attempt->port,
                                        " inside the pod: ", Join(attempt->failures, "; "))));
}

void PodDialer::OnConnected(const std::shared_ptr<Attempt>& attempt) {
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(attempt->fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    const std::string& host = attempt->hosts[attempt->next - 1];
    attempt->failures.push_back(StrCat("dial tcp ", Bracketed(host), ":", attempt->port,
                                       ": connect: ", ToLower(std::strerror(error))));
    return TryNext(attempt);
  }
  reactor_.Cancel(std::exchange(attempt->timer, kNoTimer));
  attempt->watch.reset();
  attempts_.erase(attempt);
  const int fd = attempt->fd.Release();
  attempt->done(streams_.Make(FdStreams::Kind::kSocket, fd, fd).stream);
}

}  // namespace swell::process
