#include "kube/process/network/net_probe.h"

#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/net/net_testing.h"
#include "kube/net/tls/tls.h"

namespace swell::process {
namespace {

using node::ProbeSpec;
using Protocol = ProbeSpec::Protocol;

class NetProbeTest : public net::ServerTest {
 protected:
  NetProbeTest() {
    handler.fn = [this](std::shared_ptr<net::Exchange> exchange) {
      seen_ = exchange->request();
      exchange->Respond({exchange->request().target == "/ok" ? 200 : 503, {}, {}});
    };
  }

  ProbeSpec Spec(Protocol protocol, const std::string& path = "/ok") {
    ProbeSpec spec;
    spec.protocol = protocol;
    spec.port = port;
    spec.path = path;
    spec.timeout = net::kPatience;
    return spec;
  }
  node::ProbeResult Ask(const ProbeSpec& spec) {
    std::optional<node::ProbeResult> result;
    NetProbe probe(reactor, "127.0.0.1", spec,
                   [&](node::ProbeResult answer) { result = std::move(answer); });
    EXPECT_TRUE(Run([&] { return result.has_value(); }));
    return result.value_or(node::ProbeResult());
  }

  net::HttpRequest seen_;
};

TEST_F(NetProbeTest, HttpsAsksWithoutCheckingTheCertificate) {
  const auto pair = net::GenerateCa("nobody-knows-it", clock.Now() - std::chrono::hours(1));
  ASSERT_TRUE(pair.ok());
  Serve({}, net::TlsServerConfig{pair->cert_pem, pair->key_pem, ""});
  const auto well = Ask(Spec(Protocol::kHttps));
  EXPECT_TRUE(well.ok) << well.message;
  EXPECT_EQ(Ask(Spec(Protocol::kHttps, "/no")).message, "HTTP probe failed with statuscode: 503");
  EXPECT_EQ(Ask(Spec(Protocol::kHttp)).message, "HTTP probe failed with statuscode: 400");
}

TEST_F(NetProbeTest, HttpsToAPortWithoutTlsFailsInWords) {
  Serve();
  const auto answer = Ask(Spec(Protocol::kHttps));
  EXPECT_FALSE(answer.ok);
  EXPECT_TRUE(answer.message.starts_with("TLS handshake failed: ")) << answer.message;
}

TEST_F(NetProbeTest, HeadersAreTheProbesThenTheKubelets) {
  Serve();
  ProbeSpec spec = Spec(Protocol::kHttp);
  EXPECT_TRUE(Ask(spec).ok);
  EXPECT_EQ(*net::FindHeader(seen_.headers, "Host"), StrCat("127.0.0.1:", port));
  EXPECT_EQ(*net::FindHeader(seen_.headers, "User-Agent"), "kube-probe/1.37");
  spec.headers = {
      {"Host", "train.example.com"}, {"user-agent", "me"}, {"Accept", ""}, {"X-A", "1"}};
  EXPECT_TRUE(Ask(spec).ok);
  EXPECT_EQ(*net::FindHeader(seen_.headers, "Host"), "train.example.com");
  EXPECT_EQ(*net::FindHeader(seen_.headers, "User-Agent"), "me");
  EXPECT_EQ(net::FindHeader(seen_.headers, "Accept"), nullptr);
  EXPECT_EQ(*net::FindHeader(seen_.headers, "X-A"), "1");
}

// A server that says these words to its first client; if endless, again and again.
class Speaker {
 public:
  explicit Speaker(std::string words, bool endless = false)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&at), size), 0);
    EXPECT_EQ(::listen(fd_.get(), 1), 0);
    ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&at), &size);
    port = ntohs(at.sin_port);
    thread_ = std::thread([this, endless, words = std::move(words)] {
      const UniqueFd peer(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      char buffer[4096];
      // The first of what it says is enough to know that it is there.
      EXPECT_GT(::recv(peer.get(), buffer, sizeof buffer, 0), 0);
      while (endless && ::send(peer.get(), words.data(), words.size(), MSG_NOSIGNAL) > 0) continue;
      if (endless) return;
      EXPECT_EQ(::send(peer.get(), words.data(), words.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(words.size()));
      ::shutdown(peer.get(), SHUT_WR);
      while (::recv(peer.get(), buffer, sizeof buffer, 0) > 0) continue;
    });
  }
  ~Speaker() { thread_.join(); }

  uint16_t port = 0;

 private:
  UniqueFd fd_;
  std::thread thread_;
};

TEST_F(NetProbeTest, GrpcHealthDecides) {
  const std::string settings("\0\0\0\4\0\0\0\0\0", 9);
  const std::string head("\0\0\7\0\0\0\0\0\1\0\0\0\0\2\x08", 15);
  const auto ask = [this](const std::string& words) {
    const Speaker server(words);
    port = server.port;
    return Ask(Spec(Protocol::kGrpc));
  };
  const auto well = ask(settings + head + "\1");
  EXPECT_TRUE(well.ok) << well.message;
  EXPECT_EQ(ask(settings + head + "\2").message,
            "service unhealthy (responded with \"NOT_SERVING\")");
  EXPECT_EQ(ask("HTTP/1.1 400 Bad Request\r\n\r\n").message, "the answer is not HTTP/2");
  EXPECT_FALSE(ask(settings).ok);
}

TEST_F(NetProbeTest, AServerThatNeverComesToThePointTimesOut) {
  std::string words("\0\0\0\4\0\0\0\0\0", 9);
  const std::string unknown("\0\0\0\x63\0\0\0\0\0", 9);
  while (words.size() < (1 << 20)) words += unknown;
  const Speaker server(words, /*endless=*/true);
  port = server.port;
  ProbeSpec spec = Spec(Protocol::kGrpc);
  spec.timeout = std::chrono::milliseconds(50);
  EXPECT_EQ(Ask(spec).message, "timeout: no answer about the server's health");
}

TEST_F(NetProbeTest, AClosedPortFails) {
  Serve();
  server.reset();
  for (const Protocol protocol : {Protocol::kTcp, Protocol::kHttps, Protocol::kGrpc}) {
    const auto answer = Ask(Spec(protocol));
    EXPECT_FALSE(answer.ok);
    EXPECT_EQ(answer.message, StrCat("dial tcp 127.0.0.1:", port, ": connect: connection refused"));
  }
}

}  // namespace
}  // namespace swell::process
