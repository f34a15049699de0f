#include "kube/process/network/net_probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/strings.h"
#include "kube/api/meta/kubernetes_version.h"

namespace swell::process {
namespace {

using Io = net::TlsSession::Io;
using Protocol = node::ProbeSpec::Protocol;

constexpr size_t kHeadMax = 8192;
constexpr int kReadsMax = 16;

bool IsHttp(const node::ProbeSpec& spec) {
  return spec.protocol == Protocol::kHttp || spec.protocol == Protocol::kHttps;
}

// The kubelet checks no certificate: a probe asks whether the server is well, not who it is.
Result<std::unique_ptr<net::TlsSession>> MakeSession(int fd, const std::string& name) {
  SWELL_ASSIGN_OR_RETURN(auto context, net::MakeClientContext({.insecure_skip_verify = true}));
  return net::TlsSession::Make(context, fd, name);
}

std::string HostHeader(const node::ProbeSpec& spec) {
  for (const auto& [name, value] : spec.headers) {
    if (ToLower(name) == "host") return value;
  }
  return "";
}

}  // namespace

std::string HttpProbeRequest(const node::ProbeSpec& spec, const std::string& address) {
  std::string request = StrCat("GET ", spec.path, " HTTP/1.1\r\n");
  const std::string host = HostHeader(spec);
  request += StrCat("Host: ", host.empty() ? StrCat(address, ":", spec.port) : host, "\r\n");
  bool agent = false, accept = false;
  for (const auto& [name, value] : spec.headers) {
    const std::string small = ToLower(name);
    if (small == "host") continue;
    agent = agent || small == "user-agent";
    accept = accept || small == "accept";
    // As the kubelet: an empty one of these says that no such header is sent.
    const bool left_out = value.empty() && (small == "user-agent" || small == "accept");
    if (!left_out) request += StrCat(name, ": ", value, "\r\n");
  }
  if (!agent) request += StrCat("User-Agent: kube-probe/", api::kKubernetesMinorVersion, "\r\n");
  if (!accept) request += "Accept: */*\r\n";
  return request + "Connection: close\r\n\r\n";
}

NetProbe::NetProbe(net::Reactor& reactor,
                   const std::string& address,
                   const node::ProbeSpec& spec,
                   Done done)
    : reactor_(reactor), spec_(spec), address_(address), done_(std::move(done)) {
  Begin();
}

NetProbe::~NetProbe() {
  timer_.Cancel();
  watch_.reset();
}

void NetProbe::Begin() {
  if (IsHttp(spec_)) to_send_ = HttpProbeRequest(spec_, address_);
  if (spec_.protocol == Protocol::kGrpc) {
    to_send_ = GrpcHealthRequest(StrCat(address_, ":", spec_.port), spec_.service);
  }
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(spec_.port);
  if (::inet_pton(AF_INET, address_.c_str(), &to.sin_addr) != 1) {
    return Finish(false, StrCat("host ", Quote(address_), " is not an IPv4 address"));
  }
  fd_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd_.valid()) return Finish(false, StrCat("socket: ", std::strerror(errno)));
  if (::connect(fd_.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0 &&
      errno != EINPROGRESS) {
    return Fail(StrCat("connect: ", ToLower(std::strerror(errno))));
  }
  auto watch = reactor_.Watch(fd_.get(), [this](net::Readiness) { OnReady(); });
  if (!watch.ok()) return Finish(false, watch.status().message());
  watch_ = std::move(*watch);
  watch_->SetInterest(net::Interest::kWrite);
  timer_.Start(spec_.timeout, [this] {
    if (!connected_ || spec_.protocol != Protocol::kGrpc) return Fail("i/o timeout");
    Finish(false, "timeout: no answer about the server's health");
  });
}

void NetProbe::Fail(std::string_view what) {
  Finish(false, StrCat("dial tcp ", address_, ":", spec_.port, ": ", what));
}

void NetProbe::Finish(bool ok, std::string message) {
  if (!done_) return;
  if (watch_) watch_->SetInterest(net::Interest::kNone);
  reactor_.Post(
      scope_.Wrap([done = std::exchange(done_, nullptr), ok, message = std::move(message)] {
        done({ok, message});
      }));
}

void NetProbe::OnReady() {
  if (!done_ || !Connected()) return;
  if (spec_.protocol == Protocol::kTcp) return Finish(true, "");
  if (Encrypted() && Send()) Receive();
}

bool NetProbe::Connected() {
  if (connected_) return true;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) Fail(StrCat("connect: ", ToLower(std::strerror(error))));
  return connected_ = error == 0;
}

bool NetProbe::Encrypted() {
  if (spec_.protocol != Protocol::kHttps || encrypted_) return true;
  if (!tls_) {
    const std::string host = HostHeader(spec_);
    auto made = MakeSession(fd_.get(), host.empty() ? address_ : host.substr(0, host.find(':')));
    if (!made.ok()) {
      Finish(false, made.status().message());
      return false;
    }
    tls_ = std::move(*made);
  }
  const Io io = tls_->Handshake();
  encrypted_ = io == Io::kDone;
  if (!encrypted_) Wait(io);
  return encrypted_;
}

bool NetProbe::Send() {
  while (!to_send_.empty()) {
    size_t put = 0;
    const Io io = Write(to_send_, &put);
    to_send_.erase(0, put);
    if (io == Io::kDone) continue;
    Wait(io);
    return false;
  }
  return true;
}

// A server may write faster than this reads, and the timeout is on this thread. What is left makes
// the socket ready at once; of an answer over TLS there is never so much.
void NetProbe::Receive() {
  char buffer[4096];
  for (int round = 0; done_ && round < kReadsMax; ++round) {
    size_t got = 0;
    const Io io = Read(buffer, sizeof buffer, &got);
    if (io != Io::kDone) return Wait(io);
    OnBytes({buffer, got});
    // Acknowledgements; what does not fit now goes when there is room.
    if (done_ && !Send()) return;
  }
  if (done_) Wait(Io::kWantRead);
}

// Until the socket is ready for it again; or the connection has come to its end.
void NetProbe::Wait(Io io) {
  if (io == Io::kWantRead) return watch_->SetInterest(net::Interest::kRead);
  if (io == Io::kWantWrite) return watch_->SetInterest(net::Interest::kWrite);
  if (tls_ && !encrypted_) {
    const std::string why = tls_->error().empty() ? "the connection was closed" : tls_->error();
    return Finish(false, StrCat("TLS handshake failed: ", why));
  }
  if (IsHttp(spec_)) return OnHttpAnswer(/*at_end=*/true);
  const node::ProbeResult end = grpc_.End();
  Finish(end.ok, end.message);
}

void NetProbe::OnBytes(std::string_view bytes) {
  if (IsHttp(spec_)) {
    answer_.append(bytes);
    return OnHttpAnswer(/*at_end=*/false);
  }
  const auto verdict = grpc_.Add(bytes);
  to_send_ += grpc_.TakeReply();
  if (verdict) Finish(verdict->ok, verdict->message);
}

void NetProbe::OnHttpAnswer(bool at_end) {
  const size_t end = answer_.find("\r\n");
  if (end == std::string::npos && !at_end && answer_.size() < kHeadMax) return;
  std::vector<std::string_view> words = Split(std::string_view(answer_).substr(0, end), ' ');
  auto code =
      words.size() >= 2 && words[0].starts_with("HTTP/") ? ParseInt(words[1]) : std::nullopt;
  if (!code) return Finish(false, "the answer is not HTTP");
  if (*code >= 200 && *code < 400) return Finish(true, "");
  Finish(false, StrCat("HTTP probe failed with statuscode: ", *code));
}

Io NetProbe::Read(char* buffer, size_t size, size_t* got) {
  if (tls_) return tls_->Read(buffer, size, got);
  const ssize_t n = ::recv(fd_.get(), buffer, size, 0);
  if (n < 0) return errno == EAGAIN || errno == EINTR ? Io::kWantRead : Io::kError;
  *got = static_cast<size_t>(n);
  return n == 0 ? Io::kClosed : Io::kDone;
}

Io NetProbe::Write(std::string_view bytes, size_t* put) {
  if (tls_) return tls_->Write(bytes.data(), bytes.size(), put);
  const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (n < 0) return errno == EAGAIN || errno == EINTR ? Io::kWantWrite : Io::kError;
  *put = static_cast<size_t>(n);
  return Io::kDone;
}

}  // namespace swell::process
