#include "kube/net/tls/tls.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/strings.h"
#include "kube/net/http/client.h"
#include "kube/net/net_testing.h"

namespace swell::net {
namespace {

using std::chrono::hours;

class TlsTest : public ServerTest {
 protected:
  TlsTest() {
    ca = GenerateCa("swell-ca", clock.Now() - hours(1)).value();
    CertSpec spec;
    spec.common_name = "swell-apiserver";
    spec.dns_names = {"localhost", "kubernetes.default.svc", "*.wild.test"};
    spec.ip_addresses = {"127.0.0.1", "::1"};
    spec.server = true;
    spec.not_before = clock.Now() - hours(1);
    server_cert = IssueCert(ca, spec).value();
    handler.fn = [this](std::shared_ptr<Exchange> exchange) {
      seen = exchange->request().peer;
      ++handled;
      exchange->Respond({200, {}, {MakeChunk(std::string(exchange->request().body))}});
    };
  }

  CertificatePair Client(const CertificatePair& issuer, WallTime not_before, Duration validity) {
    CertSpec spec;
    spec.common_name = "jane";
    spec.organizations = {"system:masters", "team-a"};
    spec.client = true;
    spec.not_before = not_before;
    spec.validity = validity;
    return IssueCert(issuer, spec).value();
  }

  void ServeTls() {
    Serve({.tls_handshake_timeout = kPatience},
          TlsServerConfig{server_cert.cert_pem, server_cert.key_pem, ca.cert_pem});
  }

  Result<HttpResponse> Fetch(TlsClientConfig tls,
                             const std::string& host = "127.0.0.1",
                             std::string body = "") {
    ClientConfig config;
    config.base_url = StrCat("https://", host, ":", static_cast<int>(port));
    config.tls = std::move(tls);
    auto client = HttpClient::Make(reactor, config);
    if (!client.ok()) return client.status();
    Result<HttpResponse> result(Status(Code::kInternal, "no answer"));
    bool done = false;
    HttpRequest request;
    request.method = "POST";
    request.target = "/";
    request.body = std::move(body);
    (*client)->Send(std::move(request), kPatience, [&](Result<HttpResponse> response) {
      result = std::move(response);
      done = true;
    });
    EXPECT_TRUE(Run([&] { return done; }));
    return result;
  }

  // A client of which every stream shakes hands by itself.
  std::unique_ptr<HttpClient> Streams() {
    ClientConfig config;
    config.base_url = StrCat("https://127.0.0.1:", static_cast<int>(port));
    config.tls.ca_pem = ca.cert_pem;
    config.connect_timeout = kPatience;
    config.max_streams = 32;
    return HttpClient::Make(reactor, config).value();
  }
  static void Ask(HttpClient& client, std::function<void(Status)> ended) {
    HttpRequest request;
    request.method = "GET";
    request.target = "/";
    client.Stream(
        std::move(request), [](int, const Headers&) {}, [](std::string_view) {}, std::move(ended));
  }

  CertificatePair ca;
  CertificatePair server_cert;
  PeerIdentity seen;
};

TEST_F(TlsTest, ServesVerifiedClientsByIpAndByName) {
  ServeTls();
  auto response = Fetch({.ca_pem = ca.cert_pem}, "127.0.0.1", "hello");
  ASSERT_TRUE(response.ok()) << response.status().ToString();
  EXPECT_EQ(BodyText(response->body), "hello");
  EXPECT_TRUE(seen.tls);
  EXPECT_EQ(seen.common_name, "") << "no certificate, no name";
  EXPECT_TRUE(Fetch({.ca_pem = ca.cert_pem}, "localhost").ok());
  EXPECT_TRUE(Fetch({.ca_pem = ca.cert_pem, .server_name = "kubernetes.default.svc"}).ok());
  EXPECT_TRUE(Fetch({.ca_pem = ca.cert_pem, .server_name = "a.wild.test"}).ok());
}

TEST_F(TlsTest, CarriesLargeBodiesBothWays) {
  ServeTls();
  std::string big;
  for (int i = 0; i < 300'000; ++i) big += std::to_string(i);
  auto response = Fetch({.ca_pem = ca.cert_pem}, "127.0.0.1", big);
  ASSERT_TRUE(response.ok()) << response.status().ToString();
  EXPECT_TRUE(BodyText(response->body) == big);
}

TEST_F(TlsTest, CarriesBodiesOfManyPieces) {
  ServeTls();
  Body body;
  std::string all;
  for (size_t i = 0; i < 20'000; ++i) {
    std::string piece(i % 500 == 0 ? 40'000 : i % 7 * 100, static_cast<char>('a' + i % 26));
    all += piece;
    body.push_back(MakeChunk(std::move(piece)));
  }
  handler.fn = [&](std::shared_ptr<Exchange> exchange) { exchange->Respond({200, {}, body}); };
  for (int round = 0; round < 2; ++round) {
    auto response = Fetch({.ca_pem = ca.cert_pem});
    ASSERT_TRUE(response.ok()) << response.status().ToString();
    EXPECT_TRUE(BodyText(response->body) == all);
  }
}

TEST_F(TlsTest, AClientCertificateNamesThePeer) {
  ServeTls();
  CertificatePair jane = Client(ca, clock.Now() - hours(1), hours(2));
  ASSERT_TRUE(
      Fetch({.ca_pem = ca.cert_pem, .cert_pem = jane.cert_pem, .key_pem = jane.key_pem}).ok());
  EXPECT_EQ(seen.common_name, "jane");
  EXPECT_EQ(seen.organizations, (std::vector<std::string>{"system:masters", "team-a"}));
}

TEST_F(TlsTest, RefusesClientCertificatesOfAnotherCaOrOutOfTime) {
  ServeTls();
  CertificatePair other = GenerateCa("swell-ca", clock.Now() - hours(1)).value();
  CertificatePair forged = Client(other, clock.Now() - hours(1), hours(2));
  CertificatePair expired = Client(ca, clock.Now() - hours(5), hours(2));
  for (const CertificatePair& bad : {forged, expired}) {
    auto response =
        Fetch({.ca_pem = ca.cert_pem, .cert_pem = bad.cert_pem, .key_pem = bad.key_pem});
    EXPECT_FALSE(response.ok());
  }
  EXPECT_EQ(handled, 0);
}

TEST_F(TlsTest, AServerCertificateIsNoClientCertificate) {
  ServeTls();
  auto response = Fetch(
      {.ca_pem = ca.cert_pem, .cert_pem = server_cert.cert_pem, .key_pem = server_cert.key_pem});
  EXPECT_FALSE(response.ok());
  EXPECT_EQ(handled, 0);
}

TEST_F(TlsTest, RefusesServersWithTheWrongNameOrCa) {
  ServeTls();
  for (const char* name :
       {"example.org", "127.0.0.2", "wild.test", "a.b.wild.test", "localhost.evil"}) {
    auto response = Fetch({.ca_pem = ca.cert_pem, .server_name = name});
    ASSERT_FALSE(response.ok()) << name;
    EXPECT_EQ(response.status().code(), Code::kUnavailable);
    EXPECT_NE(response.status().message().find("mismatch"), std::string::npos)
        << response.status().message();
  }
  CertificatePair other = GenerateCa("other", clock.Now() - hours(1)).value();
  auto response = Fetch({.ca_pem = other.cert_pem});
  ASSERT_FALSE(response.ok());
  EXPECT_NE(response.status().message().find("certificate verify failed"), std::string::npos)
      << response.status().message();
  EXPECT_FALSE(Fetch({}).ok()) << "the system does not know our CA";
  EXPECT_EQ(handled, 0);
  EXPECT_TRUE(Fetch({.insecure_skip_verify = true, .server_name = "example.org"}).ok());
}

TEST_F(TlsTest, TrustsEveryCaOfABundle) {
  ServeTls();
  CertificatePair other = GenerateCa("other", clock.Now() - hours(1)).value();
  EXPECT_TRUE(Fetch({.ca_pem = other.cert_pem + ca.cert_pem}).ok());
}

TEST_F(TlsTest, ResumesSessionsAndKeepsTheIdentity) {
  ServeTls();
  CertificatePair jane = Client(ca, clock.Now() - hours(1), hours(2));
  ClientConfig config;
  config.base_url = StrCat("https://127.0.0.1:", static_cast<int>(port));
  config.tls = {.ca_pem = ca.cert_pem, .cert_pem = jane.cert_pem, .key_pem = jane.key_pem};
  auto client = std::move(HttpClient::Make(reactor, config)).value();
  for (int i = 0; i < 3; ++i) {
    seen = {};
    bool done = false;
    HttpRequest request;
    request.method = "GET";
    request.target = "/";
    client->Stream(
        request, [](int, const Headers&) {}, [](std::string_view) {},
        [&](Status status) {
          EXPECT_TRUE(status.ok()) << status.ToString();
          done = true;
        });
    ASSERT_TRUE(Run([&] { return done; }));
    EXPECT_EQ(seen.common_name, "jane") << "connection " << i;
  }
  EXPECT_EQ(server->stats().connections_accepted, 3u) << "every stream has its own";
}

TEST_F(TlsTest, EndsAHandshakeThatDoesNotCome) {
  Serve({.tls_handshake_timeout = std::chrono::milliseconds(10)},
        TlsServerConfig{server_cert.cert_pem, server_cert.key_pem, ""});
  RawPeer peer(reactor, port);
  peer.ExpectEof();
  EXPECT_EQ(server->stats().timeouts, 1u);
}

TEST_F(TlsTest, ManyMayShakeHandsAtOnceAndSomeGiveUp) {
  ServeTls();
  std::vector<std::unique_ptr<RawPeer>> silent;
  for (int i = 0; i < 8; ++i) silent.push_back(std::make_unique<RawPeer>(reactor, port));
  auto client = Streams();
  int done = 0;
  for (int i = 0; i < 32; ++i) {
    Ask(*client, [&](const Status& status) {
      EXPECT_TRUE(status.ok()) << status.ToString();
      ++done;
    });
  }
  silent.clear();
  ASSERT_TRUE(Run([&] { return done == 32; }));
  EXPECT_EQ(handled, 32);
}

TEST_F(TlsTest, AServerMayEndWhileClientsShakeHands) {
  ServeTls();
  auto client = Streams();
  int ended = 0;
  for (int i = 0; i < 32; ++i) {
    Ask(*client, [&](const Status&) { ++ended; });
  }
  ASSERT_TRUE(Run([&] { return handled > 0; }));
  server = nullptr;
  ASSERT_TRUE(Run([&] { return ended == 32; }));
}

TEST_F(TlsTest, TellsPlainHttpClientsSo) {
  ServeTls();
  RawPeer peer(reactor, port);
  peer.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  peer.Expect("HTTP request to an HTTPS server");
  peer.ExpectEof();
}

TEST_F(TlsTest, SurvivesGarbage) {
  ServeTls();
  RawPeer peer(reactor, port);
  peer.Send(std::string("\x16\x03\x01\xff\xff", 5) + std::string(70'000, 'x'));
  peer.ExpectEof();
  EXPECT_TRUE(Fetch({.ca_pem = ca.cert_pem}).ok());
}

TEST_F(TlsTest, DescribesCertificates) {
  WallTime start{1'700'000'000'000'000'000};
  CertificateInfo info = DescribeCertificate(Client(ca, start, hours(2)).cert_pem).value();
  EXPECT_EQ(info.common_name, "jane");
  EXPECT_EQ(info.organizations.size(), 2u);
  EXPECT_EQ(info.not_before, start);
  EXPECT_EQ(info.not_after, start + hours(2));
  EXPECT_FALSE(DescribeCertificate("nonsense").ok());
}

TEST_F(TlsTest, RefusesBadMaterialWithReasons) {
  Serve();
  CertificatePair jane = Client(ca, clock.Now(), hours(2));
  auto mismatch = server->Listen("127.0.0.1:0", TlsServerConfig{jane.cert_pem, ca.key_pem, ""});
  EXPECT_FALSE(mismatch.ok());
  auto no_cert = server->Listen("127.0.0.1:0", TlsServerConfig{"x", jane.key_pem, ""});
  ASSERT_FALSE(no_cert.ok());
  EXPECT_NE(no_cert.status().message().find("no PEM certificate"), std::string::npos);
  EXPECT_FALSE(server->Listen("127.0.0.1:0", TlsServerConfig{jane.cert_pem, "x", ""}).ok());
  EXPECT_FALSE(
      server->Listen("127.0.0.1:0", TlsServerConfig{jane.cert_pem, jane.key_pem, "x"}).ok());
  CertSpec spec;
  spec.common_name = "x";
  spec.ip_addresses = {"300.1.1.1"};
  EXPECT_FALSE(IssueCert(ca, spec).ok());
  spec.ip_addresses.clear();
  EXPECT_FALSE(IssueCert({ca.cert_pem, jane.key_pem}, spec).ok()) << "the key is not the CA's";
}

// A request of user jane in the group team.
constexpr char kRequest[] = R"(-----BEGIN CERTIFICATE REQUEST-----
MIHZMIGAAgEAMB4xDTALBgNVBAoMBHRlYW0xDTALBgNVBAMMBGphbmUwWTATBgcq
hkjOPQIBBggqhkjOPQMBBwNCAARBRo7dHjetYIMvZbD3q/RuvJSBg0bJwYdxj11D
mXWtM/q8XjVNMS7JnKlSmB4xdjdh7Ql2Is3p5PWLI3/jtc1UoAAwCgYIKoZIzj0E
AwIDSAAwRQIhAIK15aULOWbmHUyKtUG7g3E9gxHt87pngYNBb30TuxE6AiAXXF7s
2Ou4y7y3MznYgLsLPjsIS0V+vGaKjfOUVFrEEA==
-----END CERTIFICATE REQUEST-----
)";

TEST_F(TlsTest, ARequestBecomesACertificateOfItsNames) {
  const ClientTerms terms{
      .digital_signature = true, .not_before = clock.Now() - hours(1), .validity = hours(2)};
  auto certificate = IssueClientCert(ca, kRequest, terms);
  ASSERT_TRUE(certificate.ok()) << certificate.status().ToString();
  const CertificateInfo info = DescribeCertificate(*certificate).value();
  EXPECT_EQ(info.common_name, "jane");
  EXPECT_EQ(info.organizations, std::vector<std::string>{"team"});
  EXPECT_EQ(NamesInRequest(kRequest).value().organizations, std::vector<std::string>{"team"});
}

TEST_F(TlsTest, ARequestThatItsKeyDidNotSignBecomesNothing) {
  std::string forged = kRequest;
  forged.replace(forged.find("BHRlYW0x"), 8, "BHRlYW4x");  // "team" becomes "tean"
  EXPECT_FALSE(IssueClientCert(ca, forged, {.not_before = clock.Now()}).ok());
  EXPECT_FALSE(NamesInRequest(forged).ok());
  EXPECT_FALSE(NamesInRequest("").ok());
}

TEST(CryptoTest, HashesAsOthersDo) {
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace swell::net
