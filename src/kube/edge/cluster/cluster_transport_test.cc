// Credentials that change: token files and exec plugins, against a server on the same reactor that
// knows one token. Plugins are real programs (/bin/sh).
#include "kube/edge/cluster/cluster_transport.h"

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"
#include "kube/client/client.h"
#include "kube/net/http/server.h"
#include "kube/net/net_testing.h"

namespace swell::edge {
namespace {

// A wall clock that a test moves; steady time with it.
class SetClock final : public Clock {
 public:
  WallTime Now() const override { return {kStart + offset.count()}; }
  SteadyTime Steady() const override { return {kStart + offset.count()}; }
  Duration offset = Duration::zero();

 private:
  static constexpr int64_t kStart = 1'767'225'600LL * 1'000'000'000;  // 2026-01-01
};

// 200 for the token that is good at the moment, else 401; 404 for what is missing.
class TokenServer final : public net::Handler {
 public:
  void OnRequest(std::shared_ptr<net::Exchange> exchange) override {
    const std::string* said = net::FindHeader(exchange->request().headers, "Authorization");
    seen.push_back(said ? *said : "");
    bool good = seen.back() == "Bearer " + token;
    if (good && !missing.empty()) {
      return exchange->Respond({404, {}, {net::MakeChunk(missing)}});
    }
    exchange->Respond({good ? 200 : 401, {}, {net::MakeChunk(good ? "{}" : "")}});
  }
  std::string token;
  std::string missing;  // what 404 says; empty: all is there
  std::vector<std::string> seen;
};

class ClusterTransportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto port = server.Listen("127.0.0.1:0");
    ASSERT_TRUE(port.ok());
    access.server = StrCat("http://127.0.0.1:", *port);
  }

  // A plugin that counts its runs and prints `credential` under ExecCredential's head.
  void UsePlugin(std::string_view credential) {
    std::string path = directory + "/plugin";
    std::string script = StrCat(
        "#!/bin/sh\necho run >> ", directory, "/runs\ncat <<END\n",
        R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":)",
        credential, "}\nEND\n");
    ASSERT_TRUE(WriteFileAtomically(path, script, 0755).ok());
    access.exec =
        client::ExecPlugin{.api_version = "client.authentication.k8s.io/v1", .command = path};
  }
  size_t Runs() {
    auto text = ReadFile(directory + "/runs");
    return text.ok() ? Split(Trim(*text), '\n').size() : 0;
  }
  void Open(ClusterTransportOptions options = {}) {
    auto opened = ClusterTransport::Open(reactor, clock, access, options);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    client = std::make_unique<client::Client>(reactor, std::move(*opened), api::UserInfo{}, "test");
  }
  // One request; its error, or OK.
  Status Ask(const std::string& path = "/api") {
    std::optional<Status> answer;
    client->Call({.method = "GET", .path = path}, [&](const Result<api::RestResponse>& result) {
      answer = result.ok() ? Status::Ok() : result.status();
    });
    reactor.RunUntil([&] { return answer.has_value(); }, net::kPatience);
    return answer.value_or(Status(Code::kTimeout, "no answer"));
  }

  SetClock clock;
  RealClock real;
  net::Reactor reactor;
  TokenServer handler;
  net::HttpServer server{reactor, real, handler, {}};
  client::ClusterAccess access;
  const TempDir temporary;
  const std::string directory = temporary.path();
  std::unique_ptr<client::Client> client;
};

TEST_F(ClusterTransportTest, ReadsATokenFileAgain) {
  access.token = handler.token = "first";
  access.token_file = directory + "/token";
  ASSERT_TRUE(WriteFileAtomically(access.token_file, "first\n").ok());
  Open();
  EXPECT_TRUE(Ask().ok());
  handler.token = "second";
  ASSERT_TRUE(WriteFileAtomically(access.token_file, "second\n").ok());
  EXPECT_EQ(Ask().code(), Code::kUnauthorized);
  EXPECT_TRUE(Ask().ok()) << "a refused token is read again at once";
  handler.token = "third";
  ASSERT_TRUE(WriteFileAtomically(access.token_file, "third\n").ok());
  clock.offset += std::chrono::seconds(61);
  EXPECT_TRUE(Ask().ok()) << "and every token each minute";
}

TEST_F(ClusterTransportTest, AsksItsPluginOnceForManyRequests) {
  handler.token = "given";
  UsePlugin(R"({"token":"given"})");
  Open();
  int answered = 0;
  for (int i = 0; i < 20; ++i) {
    client->Call({.method = "GET", .path = "/api"}, [&](const Result<api::RestResponse>& result) {
      EXPECT_TRUE(result.ok());
      ++answered;
    });
  }
  reactor.RunUntil([&] { return answered == 20; }, net::kPatience);
  EXPECT_EQ(answered, 20);
  EXPECT_EQ(Runs(), 1u);
}

TEST_F(ClusterTransportTest, AsksAgainBeforeTheCredentialExpires) {
  handler.token = "given";
  UsePlugin(R"({"token":"given","expirationTimestamp":"2026-01-01T00:10:00Z"})");
  Open();
  EXPECT_TRUE(Ask().ok());
  clock.offset = std::chrono::minutes(9);
  EXPECT_TRUE(Ask().ok());
  EXPECT_EQ(Runs(), 1u);
  handler.token = "new";
  UsePlugin(R"({"token":"new","expirationTimestamp":"2026-01-01T01:00:00Z"})");
  clock.offset = std::chrono::minutes(9) + std::chrono::seconds(50);
  EXPECT_TRUE(Ask().ok());
  EXPECT_EQ(Runs(), 2u);
}

TEST_F(ClusterTransportTest, AsksAgainAfterARefusalButNotAllTheTime) {
  handler.token = "given";
  UsePlugin(R"({"token":"given"})");
  Open();
  EXPECT_TRUE(Ask().ok());
  handler.token = "revoked";
  clock.offset += std::chrono::seconds(5);
  EXPECT_EQ(Ask().code(), Code::kUnauthorized);
  EXPECT_EQ(Runs(), 1u);
  EXPECT_EQ(Ask().code(), Code::kUnauthorized);
  EXPECT_EQ(Runs(), 2u) << "the request after the refused one asks for new credentials";
  EXPECT_EQ(Ask().code(), Code::kUnauthorized);
  EXPECT_EQ(Runs(), 2u) << "which is not repeated at once";
}

TEST_F(ClusterTransportTest, AFailingPluginIsTheAnswer) {
  access.exec = client::ExecPlugin{.api_version = "client.authentication.k8s.io/v1",
                                   .command = "/bin/false",
                                   .install_hint = "get it at example.com"};
  Open();
  EXPECT_EQ(Ask().message(),
            "exec plugin /bin/false: it ended with exit status 1\nget it at example.com");
  access.exec->command = "/no/such/program";
  access.exec->install_hint.clear();
  Open();
  std::string message = Ask().message();
  EXPECT_TRUE(message.starts_with("exec plugin /no/such/program: it cannot be started")) << message;
  EXPECT_TRUE(handler.seen.empty()) << "nothing was sent without credentials";
}

TEST_F(ClusterTransportTest, APluginThatHangsIsEnded) {
  access.exec = client::ExecPlugin{
      .api_version = "client.authentication.k8s.io/v1", .command = "/bin/sleep", .args = {"1000"}};
  std::optional<Status> outcome;
  auto run = ExecCredentialRun::Start(
      reactor, access, [&](Result<ExecCredential> result) { outcome = result.status(); },
      std::chrono::milliseconds(50));
  reactor.RunUntil([&] { return outcome.has_value(); }, net::kPatience);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->code(), Code::kTimeout);
}

// An API server that is starting says it for every custom resource.
TEST_F(ClusterTransportTest, AKindThatIsNotServedYetIsNoMissingObject) {
  access.token = handler.token = "t";
  Open();
  const std::string job = "/apis/kubeflow.org/v1/namespaces/a/pytorchjobs/x";
  handler.missing = R"({"kind":"Status","reason":"NotFound","code":404,"details":{}})";
  EXPECT_EQ(Ask(job).code(), Code::kUnavailable);
  EXPECT_EQ(Ask("/apis/policy/v1").code(), Code::kNotFound) << "discovery means it";
  handler.missing = "404 page not found\n";
  EXPECT_EQ(Ask(job).code(), Code::kUnavailable);
  handler.missing =
      R"({"kind":"Status","reason":"NotFound","code":404,"details":{"name":"x","kind":"pytorchjobs"}})";
  EXPECT_EQ(Ask(job).code(), Code::kNotFound);
  handler.missing = "404 page not found\n";
  Open({.trust_not_found = true});
  EXPECT_EQ(Ask(job).code(), Code::kNotFound) << "a command reports the answer as it is";
}

TEST(ExecCredential, SaysWhatIsWrongWithAPluginsOutput) {
  client::ExecPlugin plugin{.api_version = "client.authentication.k8s.io/v1", .command = "x"};
  auto error = [&](std::string_view output) {
    auto parsed = ParseExecCredential(plugin, output);
    return parsed.ok() ? std::string("no error") : parsed.status().message();
  };
  constexpr std::string_view kHead =
      R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":)";
  EXPECT_TRUE(error("please log in").starts_with("its output is not JSON"));
  EXPECT_EQ(error(R"({"kind":"Pod"})"), R"(its output: kind: "Pod": must be ExecCredential)");
  EXPECT_EQ(error(R"({"kind":"ExecCredential","apiVersion":"v1"})"),
            R"(its output: apiVersion: "v1": the kubeconfig says client.authentication.k8s.io/v1)");
  EXPECT_EQ(error(StrCat(kHead, "{}}")),
            R"(its output: status: "": holds neither a token nor a client certificate)");
  EXPECT_EQ(error(StrCat(kHead, R"({"token":"t","expirationTimestamp":"soon"}})")),
            R"(its output: status.expirationTimestamp: "soon": not an RFC 3339 time)");
  EXPECT_EQ(error(StrCat(kHead, R"({"token":"t"}})")), "no error");
}

}  // namespace
}  // namespace swell::edge
