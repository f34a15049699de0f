// Clients that mean harm, or have crashed, against the whole server: sockets, front, API server.
// Nobody else is kept waiting, nothing grows without bound, nothing is left behind.
#include <algorithm>
#include <atomic>
#include <deque>
#include <fstream>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "base/descriptors.h"
#include "base/strings.h"
#include "kube/apiserver/api_server.h"
#include "kube/edge/http/http_front.h"
#include "kube/net/net_testing.h"
#include "kube/store/backend.h"

namespace swell::edge {
namespace {

using net::kPatience;
using net::RawPeer;

constexpr char kMaps[] = "/api/v1/namespaces/default/configmaps";

// Resident, in bytes: what sockets hold in the kernel is not part of it.
size_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  size_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// The server lives on threads of its own; the test's reactor is its clients'.
class HostileTest : public testing::Test {
 protected:
  void Serve(net::ServerConfig config = {},
             HttpFrontConfig front_config = {},
             const std::optional<net::TlsServerConfig>& tls = {}) {
    auto opened = store::Store::Open(core_, store::MakeMemoryBackend(core_));
    ASSERT_TRUE(opened.ok());
    store_ = std::move(*opened);
    apiserver::Options options;
    for (const char* name : {"ordinary", "greedy"}) {
      options.tokens.push_back({StrCat(name, "-token"), {name, "", {"system:masters"}}});
    }
    options.metrics = &metrics_;
    options.audit_level = apiserver::AuditLevel::kAll;
    options.audit = [this](std::string line) { audit_.push_back(std::move(line)); };
    server_ = apiserver::ApiServer::Create(core_, clock_, random_, *store_, std::move(options));
    front_ = std::make_unique<HttpFront>(core_, *server_, front_config);
    http_ = std::make_unique<net::HttpServer>(io_, clock_, *front_, config);
    auto port = http_->Listen("127.0.0.1:0", tls);
    ASSERT_TRUE(port.ok()) << port.status().ToString();
    port_ = *port;
    core_thread_ = std::thread([this] {
      server_->Bootstrap([this](const Status& status) {
        EXPECT_TRUE(status.ok());
        ready_ = true;
      });
      core_.Run();
    });
    io_thread_ = std::thread([this] { io_.Run(); });
    ASSERT_TRUE(Until([this] { return ready_.load(); }));
  }
  ~HostileTest() override {
    if (io_thread_.joinable()) {
      io_.Post([this] {
        http_.reset();
        io_.Stop();
      });
      io_thread_.join();
    }
    if (core_thread_.joinable()) {
      core_.Post([this] {
        front_->Close();
        core_.Stop();
      });
      core_thread_.join();
    }
  }

  static std::string Request(std::string_view method,
                             std::string_view target,
                             std::string_view body = {},
                             std::string_view user = "ordinary") {
    return StrCat(method, " ", target, " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ", user,
                  "-token\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
  }
  // One request on a connection of its own; the status line.
  std::string Ask(std::string_view method, std::string_view target, std::string_view body = {}) {
    RawPeer peer(reactor_, port_);
    peer.Send(Request(method, target, body));
    peer.Expect("\r\n\r\n");
    return peer.received.substr(0, peer.received.find("\r\n"));
  }
  // What happens on the server's threads is not an event of the clients' reactor: it is looked for.
  bool Until(const std::function<bool()>& done) {
    constexpr Duration kLook = std::chrono::milliseconds(5);
    for (Duration waited{0}; waited < kPatience && !done(); waited += kLook) reactor_.RunFor(kLook);
    return done();
  }

  RealClock clock_;
  Random random_{1};
  Metrics metrics_;
  net::Reactor reactor_;  // the clients'
  net::Reactor core_;
  net::Reactor io_;
  std::unique_ptr<store::Store> store_;
  std::shared_ptr<apiserver::ApiServer> server_;
  std::unique_ptr<HttpFront> front_;
  std::unique_ptr<net::HttpServer> http_;
  std::thread core_thread_;
  std::thread io_thread_;
  uint16_t port_ = 0;
  std::atomic<bool> ready_{false};
  std::vector<std::string> audit_;  // the core thread's
};

std::string BigMap(int number, size_t bytes) {
  return StrCat(R"({"metadata":{"name":"big-)", number, R"("},"data":{"x":")",
                std::string(bytes, 'x'), "\"}}");
}

TEST_F(HostileTest, AThousandWatchersThatNeverRead) {
  const size_t wanted = 1000;
  const size_t watchers = std::min(wanted, (RaiseDescriptorLimit() - 100) / 2);
  net::ServerConfig config;
  config.stream_buffer_bytes = 256 << 10;
  Serve(config);
  std::deque<RawPeer> stuck;
  for (size_t i = 0; i < watchers; ++i) {
    RawPeer& peer = stuck.emplace_back(reactor_, port_, 2048);
    peer.Send(Request("GET", StrCat(kMaps, "?watch=1")));
    peer.StopReading();
  }
  ASSERT_TRUE(Until([&] { return front_->stats().in_flight.load() >= watchers; }));
  const size_t before = ResidentBytes();
  // More than sockets and buffers take: clients that do not read are cut off, the others continue.
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(Ask("POST", kMaps, BigMap(i, 32 << 10)), "HTTP/1.1 201 Created");
    EXPECT_EQ(Ask("GET", "/version"), "HTTP/1.1 200 OK");
  }
  // What watchers share is there once: nothing like watchers × events.
  EXPECT_LT(ResidentBytes(), before + (size_t{192} << 20));
  stuck.clear();
  EXPECT_TRUE(Until([&] { return front_->stats().in_flight.load() == 0; }));
  EXPECT_TRUE(Until([&] { return http_->stats().connections_open.load() == 0; }));
  EXPECT_EQ(Ask("GET", "/readyz"), "HTTP/1.1 200 OK");
}

TEST_F(HostileTest, WatchersThatFallBehindAreCutOff) {
  net::ServerConfig config;
  config.stream_buffer_bytes = 128 << 10;
  Serve(config);
  RawPeer stuck(reactor_, port_, 2048);
  stuck.Send(Request("GET", StrCat(kMaps, "?watch=1")));
  stuck.StopReading();
  ASSERT_TRUE(Until([&] { return front_->stats().in_flight.load() == 1; }));
  // A socket on this machine takes some megabytes before it is full.
  int made = 0;
  while (front_->stats().in_flight.load() > 0 && made < 200) {
    ASSERT_EQ(Ask("POST", kMaps, BigMap(made++, 500 << 10)), "HTTP/1.1 201 Created");
  }
  EXPECT_TRUE(Until([&] { return front_->stats().in_flight.load() == 0; })) << made;
  EXPECT_GE(http_->stats().overflows.load(), 1u);
}

// A client that reads gets all of it, however little of it a buffer holds.
TEST_F(HostileTest, WatchesMayBeginWithMoreThanABufferHolds) {
  net::ServerConfig config;
  config.stream_buffer_bytes = 128 << 10;
  Serve(config);
  constexpr size_t kBytes = 60 << 10;
  size_t made = 0;
  while (made < 40) {
    ASSERT_EQ(Ask("POST", kMaps, BigMap(static_cast<int>(made++), kBytes)), "HTTP/1.1 201 Created");
  }
  // The state, and all that has happened.
  for (const char* query : {"?watch=1", "?watch=1&resourceVersion=2"}) {
    RawPeer peer(reactor_, port_);
    peer.Send(Request("GET", StrCat(kMaps, query)));
    const auto all_came = [&] {
      return peer.received.size() > made * kBytes / 2 &&
             net::CountOf(peer.received, R"({"type":"ADDED")") == made;
    };
    EXPECT_TRUE(Until(all_came)) << query;
    EXPECT_EQ(Ask("POST", kMaps, BigMap(static_cast<int>(made++), 1)), "HTTP/1.1 201 Created");
    EXPECT_TRUE(Until(all_came)) << query;
  }
  EXPECT_EQ(http_->stats().overflows.load(), 0u);
}

TEST_F(HostileTest, ListsThatNobodyReadsHoldLittle) {
  Serve();
  constexpr size_t kCount = 40, kBytes = 256 << 10, kClients = 60;
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(Ask("POST", kMaps, BigMap(static_cast<int>(i), kBytes)), "HTTP/1.1 201 Created");
  }
  const size_t before = ResidentBytes();
  std::deque<RawPeer> stuck;
  for (size_t i = 0; i < kClients; ++i) {
    RawPeer& peer = stuck.emplace_back(reactor_, port_, 2048);
    peer.Send(Request("GET", kMaps, {}, "greedy"));
    peer.StopReading();
  }
  ASSERT_TRUE(Until([&] { return front_->stats().in_flight.load() == kClients; }));
  // A later client that reads gets all of it.
  RawPeer reader(reactor_, port_);
  reader.Send(Request("GET", kMaps));
  EXPECT_TRUE(Until([&] { return reader.received.ends_with("\r\n0\r\n\r\n"); }));
  EXPECT_EQ(net::CountOf(reader.received, "\"name\":\"big-"), kCount);
  EXPECT_GT(reader.received.size(), kCount * kBytes);
  EXPECT_LT(ResidentBytes(), before + kClients * kCount * kBytes / 2);
  stuck.clear();
  EXPECT_TRUE(Until([&] { return front_->stats().in_flight.load() == 0; }));
}

TEST_F(HostileTest, HeadsAndBodiesThatTrickleInHoldNobodyUp) {
  net::ServerConfig config;
  config.header_timeout = std::chrono::seconds(1);
  config.body_timeout = std::chrono::seconds(1);
  Serve(config);
  std::deque<RawPeer> slow;
  for (int i = 0; i < 200; ++i) {
    RawPeer& peer = slow.emplace_back(reactor_, port_);
    if (i % 2 == 0) {
      peer.Send("GET /version HTTP/1.1\r\nHost: x\r\nX-Slow: ");
    } else {
      peer.Send(StrCat("POST ", kMaps, " HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"));
    }
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Ask("GET", "/version"), "HTTP/1.1 200 OK");
  for (RawPeer& peer : slow) peer.ExpectEof();
  EXPECT_EQ(front_->stats().in_flight.load(), 0u);
}

// Nothing behind an ambiguous request is taken for another one.
TEST_F(HostileTest, SmuggledRequestsAreNoRequests) {
  Serve();
  const std::string inner = Request("DELETE", "/api/v1/namespaces/default");
  const std::string attacks[] = {
      StrCat("POST ", kMaps,
             " HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: "
             "chunked\r\n\r\n0\r\n\r\n",
             inner),
      StrCat("POST ", kMaps, " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: ",
             inner.size(), "\r\n\r\n", inner),
      StrCat("POST ", kMaps, " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n", inner),
      StrCat("POST ", kMaps, " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n", inner),
      StrCat("GET /version HTTP/1.1\r\nHost: x\r\n Content-Length: 5\r\n\r\n", inner),
      StrCat("GET /version HTTP/1.1\nHost: x\n\n", inner),
      StrCat("GET /version HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", inner),
      StrCat("GET  /version HTTP/1.1\r\nHost: x\r\n\r\n", inner),
      StrCat("GET /version HTTP/1.1\r\nHost: x\r\n", std::string("A: b\0c\r\n\r\n", 10), inner),
      StrCat("GET /version HTTP/1.1\r\nHost: x\r\nA: b\rDELETE / HTTP/1.1\r\n\r\n", inner)};
  std::vector<std::string> all(std::begin(attacks), std::end(attacks));
  for (const char* framing :
       {"Content-Length: +4", "Content-Length: 4, 4", "Content-Length: 0x4",
        "Content-Length:", "Transfer-Encoding:\r\n chunked", "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding:\x0b"
        "chunked",
        "Transfer-Encoding: \"chunked\""}) {
    all.push_back(StrCat("POST ", kMaps, " HTTP/1.1\r\nHost: x\r\n", framing, "\r\n\r\n", inner));
  }
  all.push_back(StrCat("POST ", kMaps, " HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", inner));
  const std::string extension(64 << 10, 'x');
  for (const std::string& body :
       {std::string("4\nabcd\r\n0\r\n\r\n"), std::string("4;a=b\nabcd\r\n0\r\n\r\n"),
        std::string("0x4\r\nabcd\r\n0\r\n\r\n"), std::string("-1\r\n"),
        std::string("4 \r\nabcd\r\n0\r\n\r\n"), std::string("10000000000000004\r\nabcd\r\n"),
        std::string("4\r\nabcdX\r\n0\r\n\r\n"), std::string("0\r\nA: b\n\r\n"),
        std::string("0\r\nA: b\r\n c\r\n\r\n"), StrCat("4;", extension, "\r\nabcd\r\n"),
        StrCat("0\r\nA: ", extension, extension, "\r\n\r\n")}) {
    all.push_back(StrCat(
        "POST ", kMaps, " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", body, inner));
  }
  for (const std::string& attack : all) {
    RawPeer peer(reactor_, port_);
    peer.Send(attack);
    peer.ExpectEof();
    EXPECT_EQ(peer.received.substr(0, 12), "HTTP/1.1 400") << attack;
    EXPECT_EQ(net::CountOf(peer.received, "HTTP/1.1 "), 1u) << attack;
  }
  EXPECT_EQ(Ask("GET", "/api/v1/namespaces/default"), "HTTP/1.1 200 OK");
}

TEST_F(HostileTest, PathsLeadNowhereElse) {
  Serve();
  for (const char* path :
       {"/../../etc/passwd", "/api/v1/../../metrics", "/api/v1/namespaces/%2e%2e/configmaps/x",
        "/api/v1/namespaces/default/configmaps/..%2f..%2fsecrets%2fx",
        "/api/v1/namespaces/default/configmaps/%00", "//api/v1/namespaces/%zz",
        "/openapi/v3/../../../etc/passwd"}) {
    const std::string status = Ask("GET", path);
    EXPECT_TRUE(status.starts_with("HTTP/1.1 4")) << path << ": " << status;
  }
}

TEST_F(HostileTest, DeepAndLargeDocumentsAreRefused) {
  Serve();
  std::string deep = R"({"metadata":{"name":"deep"},"data":)";
  for (int i = 0; i < 100'000; ++i) deep += R"({"a":)";
  EXPECT_EQ(Ask("POST", kMaps, deep), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(Ask("POST", kMaps, std::string(200'000, '[')), "HTTP/1.1 400 Bad Request");
  EXPECT_TRUE(Ask("POST", kMaps, std::string(size_t{4} << 20, ' ')).starts_with("HTTP/1.1 413"));
  EXPECT_EQ(Ask("GET", "/readyz"), "HTTP/1.1 200 OK");
}

// One client opens all it can: the others still get in.
TEST_F(HostileTest, OneClientCannotTakeAllPlaces) {
  HttpFrontConfig front;
  front.in_flight_max = 40;
  Serve({}, front);
  std::deque<RawPeer> greedy;
  for (int i = 0; i < 40; ++i) {
    RawPeer& peer = greedy.emplace_back(reactor_, port_);
    peer.Send(Request("GET", StrCat(kMaps, "?watch=1"), "", "greedy"));
  }
  ASSERT_TRUE(Until([&] { return front_->stats().refused_clients.load() == 20; }));
  EXPECT_EQ(front_->stats().in_flight.load(), 20u);
  EXPECT_EQ(Ask("GET", "/version"), "HTTP/1.1 200 OK");
}

// A ClientHello without extensions, as clients of `version` (0x0302: TLS 1.1) send it.
std::string ClientHello(int version, bool fallback) {
  std::string suites("\xc0\x14\xc0\x13\x00\x35\x00\x2f", 8);
  if (version == 0x0303) suites += std::string("\xc0\x2b\xc0\x2f\xc0\x2c\xc0\x30", 8);
  if (fallback) suites += std::string("\x56\x00", 2);
  auto number = [](size_t value, int bytes) {
    std::string out;
    for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>((value >> (8 * i)) & 255);
    return out;
  };
  const std::string hello =
      StrCat(number(static_cast<size_t>(version), 2), std::string(32, 'r'), std::string(1, '\0'),
             number(suites.size(), 2), suites, std::string("\x01\x00", 2));
  const std::string handshake = StrCat("\x01", number(hello.size(), 3), hello);
  return StrCat(std::string("\x16\x03\x01", 3), number(handshake.size(), 2), handshake);
}

// Nobody is talked into an old protocol, not even by who takes the new one out of the greeting.
TEST_F(HostileTest, OldTlsIsRefused) {
  auto ca = net::GenerateCa("test", clock_.Now() - std::chrono::minutes(5));
  ASSERT_TRUE(ca.ok());
  auto pair = net::IssueCert(*ca, {.common_name = "x",
                                   .dns_names = {"localhost"},
                                   .server = true,
                                   .not_before = clock_.Now() - std::chrono::minutes(5)});
  ASSERT_TRUE(pair.ok());
  Serve({}, {}, net::TlsServerConfig{pair->cert_pem, pair->key_pem, {}});
  struct Greeting {
    int version;
    bool fallback;
    int alert;  // 40: handshake_failure, 70: protocol_version, 86: inappropriate_fallback
  };
  for (const Greeting& greeting :
       {Greeting{0x0300, false, 40}, Greeting{0x0301, false, 70}, Greeting{0x0302, false, 70},
        Greeting{0x0302, true, 70}, Greeting{0x0303, true, 86}}) {
    RawPeer peer(reactor_, port_);
    peer.Send(ClientHello(greeting.version, greeting.fallback));
    peer.ExpectEof();
    ASSERT_EQ(peer.received.size(), 7u) << greeting.version;
    EXPECT_EQ(peer.received[0], 0x15);
    EXPECT_EQ(static_cast<int>(peer.received[6]), greeting.alert) << greeting.version;
  }
}

// What people send stays within its quotes, and its line.
TEST_F(HostileTest, NothingIsSmuggledIntoTheAuditLog) {
  Serve();
  const std::string forged = R"({"kind":"Event","user":{"username":"system:admin"}})";
  RawPeer peer(reactor_, port_);
  peer.Send(StrCat("GET ", kMaps, "/a%0a%7b%22kind%22%3a1%7d%1b%5b2J%22%5c?x=%0d%0a",
                   " HTTP/1.1\r\n",
                   "Host: x\r\nAuthorization: Bearer ordinary-token\r\nUser-Agent: ", forged,
                   "\\\"\t\r\nContent-Length: 0\r\n\r\n"));
  peer.Expect("\r\n\r\n");
  EXPECT_EQ(Ask("POST", kMaps, R"({"metadata":{"name":"a\nb\u001b\u2028"}})"),
            "HTTP/1.1 422 Unprocessable Entity");
  std::vector<std::string> lines;
  std::atomic<bool> taken{false};
  core_.Post([&] {
    lines = audit_;
    taken = true;
  });
  ASSERT_TRUE(Until([&] { return taken.load(); }));
  ASSERT_GE(lines.size(), 2u);
  for (const std::string& line : lines) {
    ASSERT_TRUE(line.ends_with('\n'));
    for (char c : std::string_view(line).substr(0, line.size() - 1)) {
      ASSERT_GE(static_cast<unsigned char>(c), 0x20) << line;
    }
    auto event = json::Parse(line);
    ASSERT_TRUE(event.ok()) << line;
    EXPECT_EQ(json::GetString(*event, {"kind"}), "Event");
    EXPECT_NE(json::GetString(*event, {"user", "username"}), "system:admin") << line;
  }
}

}  // namespace
}  // namespace swell::edge
