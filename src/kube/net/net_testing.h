// What net's own tests share: a handler made of a lambda, a peer that speaks raw bytes, and a
// fixture with a server on port 0. Everything runs on the test's thread.
#pragma once

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "kube/net/http/server.h"
#include "kube/net/reactor/reactor.h"
#include "kube/net/reactor/socket.h"

namespace swell::net {

// How long a test waits for something that must happen; only a broken program ever waits so long.
inline constexpr Duration kPatience = std::chrono::seconds(100);

class LambdaHandler final : public Handler {
 public:
  void OnRequest(std::shared_ptr<Exchange> exchange) override { fn(std::move(exchange)); }
  std::function<void(std::shared_ptr<Exchange>)> fn;
};

// Sends exactly the bytes it is told to and keeps what comes back.
class RawPeer {
 public:
  RawPeer(Reactor& reactor, uint16_t port, int receive_buffer = 0)
      : reactor_(reactor), fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer > 0) {
      setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    watch_ = std::move(reactor_.Watch(fd_.get(), [this](Readiness ready) {
               if (ready.readable) Read();
               if (ready.writable) Write();
             })).value();
    watch_->SetInterest(Interest::kRead);
  }

  void Send(std::string_view bytes) {
    out_ += bytes;
    Write();
  }
  void StopReading() { SetReading(false); }
  void SetReading(bool on) {
    reading_ = on;
    watch_->SetInterest(InterestIn(reading_, !out_.empty()));
  }
  void HalfClose() { shutdown(fd_.get(), SHUT_WR); }
  void Close() {
    watch_ = nullptr;
    fd_ = UniqueFd();
  }

  // Runs the reactor until that text has come. The test fails when it does not.
  void Expect(std::string_view text) {
    EXPECT_TRUE(
        reactor_.RunUntil([&] { return received.find(text) != std::string::npos; }, kPatience))
        << "no \"" << text << "\" in:\n"
        << received.substr(0, 2000);
  }
  void ExpectEof() {
    EXPECT_TRUE(reactor_.RunUntil([&] { return eof; }, kPatience)) << received.substr(0, 2000);
  }
  size_t unsent() const { return out_.size(); }
  // Whether all that was sent lies where the server reads, told without letting it read.
  bool Arrived() const {
    int unacknowledged = 0;
    return out_.empty() && ioctl(fd_.get(), SIOCOUTQ, &unacknowledged) == 0 && unacknowledged == 0;
  }

  std::string received;
  bool eof = false;

 private:
  void Read() {
    char buffer[65536];
    ssize_t got = recv(fd_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      eof = true;
      watch_->SetInterest(Interest::kNone);
      return;
    }
    received.append(buffer, static_cast<size_t>(got));
  }
  void Write() {
    while (!out_.empty()) {
      ssize_t put = send(fd_.get(), out_.data(), out_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (put <= 0) break;
      out_.erase(0, static_cast<size_t>(put));
    }
    watch_->SetInterest(InterestIn(reading_ && !eof, !out_.empty() && !eof));
  }

  Reactor& reactor_;
  UniqueFd fd_;
  std::unique_ptr<FdWatch> watch_;
  std::string out_;
  bool reading_ = true;
};

class ServerTest : public testing::Test {
 protected:
  ServerTest() {
    handler.fn = [this](std::shared_ptr<Exchange> exchange) {
      ++handled;
      const HttpRequest& request = exchange->request();
      exchange->Respond(
          {200,
           {},
           {MakeChunk(request.method + " " + request.target + " [" + request.body + "]\n")}});
    };
  }
  void Serve(ServerConfig config = {}, const std::optional<TlsServerConfig>& tls = std::nullopt) {
    server = std::make_unique<HttpServer>(reactor, clock, handler, config);
    auto listening = server->Listen("127.0.0.1:0", tls);
    ASSERT_TRUE(listening.ok()) << listening.status().ToString();
    port = *listening;
  }
  // From now on, requests get no answer. `held` is the newest; `closed` says that a peer has gone.
  void HoldRequests() {
    handler.fn = [this](std::shared_ptr<Exchange> exchange) {
      exchange->OnClose([this] { closed = true; }, reactor);
      held = std::move(exchange);
    };
  }
  // Sends it all, waits for the server to close, returns what it said.
  std::string Talk(std::string_view bytes) {
    RawPeer peer(reactor, port);
    peer.Send(bytes);
    peer.ExpectEof();
    return peer.received;
  }
  bool Run(const std::function<bool()>& done) { return reactor.RunUntil(done, kPatience); }

  Reactor reactor;
  RealClock clock;
  LambdaHandler handler;
  bool closed = false;
  std::unique_ptr<HttpServer> server;
  std::shared_ptr<Exchange> held;
  uint16_t port = 0;
  int handled = 0;
};

inline size_t CountOf(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size()))
    ++count;
  return count;
}

}  // namespace swell::net
