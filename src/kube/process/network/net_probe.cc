#include "kube/process/network/net_probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/strings.h"

namespace swell::edge {

NetProbe::NetProbe(net::Reactor& reactor,
                   const std::string& address,
                   const node::ProbeSpec& spec,
                   Done done)
    : reactor_(reactor), spec_(spec), address_(address), done_(std::move(done)) {
  Begin();
}

void NetProbe::Begin() {
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(spec_.port);
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (::inet_pton(AF_INET, address_.c_str(), &to.sin_addr) != 1) {
    return Finish(false, StrCat("host ", Quote(address_), " is not an IPv4 address"));
  }
  if (fd_ < 0) return Finish(false, StrCat("socket: ", std::strerror(errno)));
  if (::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0 && errno != EINPROGRESS) {
    return Finish(false, StrCat("dial tcp ", address_, ":", spec_.port,
                                ": connect: ", ToLower(std::strerror(errno))));
  }
  auto watch = reactor_.Watch(fd_, [this](bool r, bool w) { OnReady(r, w); });
  if (!watch.ok()) return Finish(false, watch.status().message());
  watch_ = std::move(*watch);
  watch_->SetInterest(false, true);
  timer_.Start(spec_.timeout, [this] {
    Finish(false, StrCat("dial tcp ", address_, ":", spec_.port, ": i/o timeout"));
  });
}

NetProbe::~NetProbe() {
  timer_.Cancel();
  watch_.reset();
  if (fd_ >= 0) ::close(fd_);
}

void NetProbe::Finish(bool ok, std::string message) {
  if (!done_) return;
  if (watch_) watch_->SetInterest(false, false);
  reactor_.Post(
      scope_.Wrap([done = std::exchange(done_, nullptr), ok, message = std::move(message)] {
        done({ok, message});
      }));
}

void NetProbe::OnReady(bool readable, bool) {
  if (readable) return OnAnswer();
  if (connected_) return;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    return Finish(false, StrCat("dial tcp ", address_, ":", spec_.port,
                                ": connect: ", ToLower(std::strerror(error))));
  }
  connected_ = true;
  if (!spec_.http) return Finish(true, "");
  std::string request = StrCat("GET ", spec_.path, " HTTP/1.1\r\n");
  bool host = false;
  for (const auto& [name, value] : spec_.headers) {
    host = host || ToLower(name) == "host";
    request += StrCat(name, ": ", value, "\r\n");
  }
  if (!host) request += StrCat("Host: ", address_, ":", spec_.port, "\r\n");
  request += "User-Agent: kube-probe/1.32\r\nAccept: */*\r\nConnection: close\r\n\r\n";
  // A fresh connection takes a request of this size whole.
  if (::send(fd_, request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size())) {
    return Finish(false, StrCat("cannot send the request: ", std::strerror(errno)));
  }
  watch_->SetInterest(true, false);
}

void NetProbe::OnAnswer() {
  char buffer[2048];
  ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n > 0) answer_.append(buffer, static_cast<size_t>(n));
  size_t end = answer_.find("\r\n");
  if (end == std::string::npos && n > 0 && answer_.size() < 8192) return;
  std::vector<std::string_view> words = Split(std::string_view(answer_).substr(0, end), ' ');
  auto code =
      words.size() >= 2 && words[0].starts_with("HTTP/") ? ParseInt(words[1]) : std::nullopt;
  if (!code) return Finish(false, "the answer is not HTTP");
  if (*code >= 200 && *code < 400) return Finish(true, "");
  Finish(false, StrCat("HTTP probe failed with statuscode: ", *code));
}

}  // namespace swell::edge
