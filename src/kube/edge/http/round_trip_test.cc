// The front and the transport, back to back over loopback: a scripted RestHandler behind an
// HttpServer on its own thread, asked through HttpTransport. Everything waits on events, port 0.

#include <functional>
#include <map>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/value.h"
#include "kube/api/rest/sink_capabilities.h"
#include "kube/client/client.h"
#include "kube/edge/http/http_front.h"
#include "kube/edge/http/http_transport.h"
#include "kube/net/http/server.h"
#include "kube/net/net_testing.h"
#include "kube/net/reactor/reactor.h"
#include "kube/net/tls/tls.h"

namespace swell::edge {
namespace {

// Answers by path; keeps what it was asked and the sinks of calls it left open.
class ScriptedHandler final : public api::RestHandler {
 public:
  struct Open final : api::RestCall {
    explicit Open(int& cancelled) : cancelled(cancelled) {}
    ~Open() override { ++cancelled; }
    int& cancelled;
  };

  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    requests.push_back(request);
    if (request.path == "/open") {
      open.push_back(std::move(sink));
      return std::make_unique<Open>(ended);
    }
    if (request.path == "/endless") {
      Piece(sink);
      return std::make_unique<Open>(ended);
    }
    if (request.path == "/stream") {
      sink->OnStreamStart(200, "application/json;stream=watch");
      open.push_back(std::move(sink));
      return std::make_unique<Open>(ended);
    }
    api::RestResponse response;
    response.status = request.path == "/missing" ? 404 : 200;
    response.content_type = "text/plain";
    response.headers.emplace_back("X-Test", "yes");
    response.body = {api::MakeChunk("hello "), api::MakeChunk(request.body)};
    sink->OnResponse(std::move(response));
    return nullptr;
  }

  // One more piece of an answer that has no end, unless it is told to.
  void Piece(const std::shared_ptr<api::RestSink>& sink) {
    ++pieces;
    if (enough) return sink->OnResponse({});
    sink->capabilities().turns->InTurn([this, sink] { Piece(sink); });
  }

  std::vector<api::RestRequest> requests;
  std::vector<std::shared_ptr<api::RestSink>> open;
  int pieces = 0;
  bool enough = false;
  int ended = 0;
};

struct Answer final : api::RestSink {
  void OnResponse(api::RestResponse r) override {
    response = std::move(r);
    done = true;
  }
  void OnStreamStart(int s, std::string type) override {
    stream_status = s;
    stream_type = std::move(type);
  }
  bool OnChunk(const api::Chunk& chunk) override {
    text += *chunk;
    return accept;
  }
  void OnStreamEnd(const Status& why) override {
    end = why;
    done = true;
  }
  api::RestResponse response;
  int stream_status = 0;
  std::string stream_type, text;
  Status end;
  bool done = false;
  bool accept = true;
};

class EdgeTest : public ::testing::Test {
 protected:
  ~EdgeTest() override {
    transport_.reset();
    Stop();
  }

  void Serve(HttpFrontConfig config = {},
             const std::optional<net::TlsServerConfig>& tls = std::nullopt) {
    front_ = std::make_unique<HttpFront>(core_, handler_, config);
    server_ = std::make_unique<net::HttpServer>(io_, clock_, *front_, net::ServerConfig{});
    auto port = server_->Listen("127.0.0.1:0", tls);
    ASSERT_TRUE(port.ok()) << port.status().ToString();
    port_ = *port;
    thread_ = std::thread([this] { io_.Run(); });
  }
  void Connect(HttpTransportConfig config = {}, const std::string& scheme = "http") {
    config.client.base_url = StrCat(scheme, "://127.0.0.1:", port_);
    auto made = HttpTransport::Make(core_, config);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    transport_ = std::move(*made);
  }
  void Stop() {
    if (!thread_.joinable()) return;
    io_.Post([this] { server_.reset(); });
    io_.Post([this] { io_.Stop(); });
    thread_.join();
    front_.reset();
  }
  std::shared_ptr<Answer> Ask(api::RestRequest request) {
    auto answer = std::make_shared<Answer>();
    calls_.push_back(transport_->Handle(std::move(request), answer));
    return answer;
  }
  bool Until(const std::function<bool()>& done) { return core_.RunUntil(done, net::kPatience); }

  net::Reactor core_;
  net::Reactor io_;
  RealClock clock_;
  ScriptedHandler handler_;
  std::unique_ptr<HttpFront> front_;
  std::unique_ptr<net::HttpServer> server_;
  std::thread thread_;
  uint16_t port_ = 0;
  std::unique_ptr<HttpTransport> transport_;
  std::vector<std::unique_ptr<api::RestCall>> calls_;
};

TEST_F(EdgeTest, RequestAndAnswerSurviveTheWire) {
  Serve();
  HttpTransportConfig config;
  config.bearer_token = "secret";
  Connect(config);
  auto answer = Ask({.method = "POST",
                     .path = "/api/v1/namespaces/a%2Fb/pods",
                     .query = "dryRun=All&x=%20",
                     .accept = "application/json;as=Table",
                     .content_type = "application/merge-patch+json",
                     .body = "{\"a\":1}",
                     .user_agent = "test/1",
                     .user = {.name = "root"}});
  ASSERT_TRUE(Until([&] { return answer->done; }));
  EXPECT_EQ(answer->response.status, 200);
  EXPECT_EQ(answer->response.content_type, "text/plain");
  EXPECT_EQ(answer->response.BodyString(), "hello {\"a\":1}");
  bool marked = false;
  for (const auto& [name, value] : answer->response.headers) {
    marked = marked || (net::EqualsIgnoreCase(name, "X-Test") && value == "yes");
  }
  EXPECT_TRUE(marked);

  ASSERT_EQ(handler_.requests.size(), 1u);
  const api::RestRequest& seen = handler_.requests[0];
  EXPECT_EQ(seen.method, "POST");
  EXPECT_EQ(seen.path, "/api/v1/namespaces/a%2Fb/pods");
  EXPECT_EQ(seen.query, "dryRun=All&x=%20");
  EXPECT_EQ(seen.accept, "application/json;as=Table");
  EXPECT_EQ(seen.content_type, "application/merge-patch+json");
  EXPECT_EQ(seen.body, "{\"a\":1}");
  EXPECT_EQ(seen.user_agent, "test/1");
  EXPECT_EQ(seen.credentials.bearer_token, "secret");
  EXPECT_EQ(seen.user.name, "") << "nobody may claim an identity over the network";
  EXPECT_TRUE(seen.remote.starts_with("127.0.0.1:")) << seen.remote;
}

TEST_F(EdgeTest, CallersActWithTheirOwnTokensOnly) {
  Serve();
  client::ClusterAccess access;
  access.token = "of the process";
  Connect(CallersConfig(access));
  auto nobody = Ask({.method = "GET", .path = "/echo", .user = {.name = "root"}});
  ASSERT_TRUE(Until([&] { return nobody->done; }));
  EXPECT_EQ(nobody->response.status, 401);
  EXPECT_TRUE(handler_.requests.empty()) << "nothing is sent for a caller without a token";
  auto jane = Ask({.method = "GET", .path = "/echo", .credentials = {.bearer_token = "jane"}});
  auto john = Ask({.method = "GET", .path = "/echo", .credentials = {.bearer_token = "john"}});
  ASSERT_TRUE(Until([&] { return jane->done && john->done; }));
  ASSERT_EQ(handler_.requests.size(), 2u);
  std::set<std::string> tokens;
  for (const auto& request : handler_.requests) tokens.insert(request.credentials.bearer_token);
  EXPECT_EQ(tokens, (std::set<std::string>{"jane", "john"}));
}

TEST_F(EdgeTest, ErrorStatusIsAnAnswer) {
  Serve();
  Connect();
  auto answer = Ask({.method = "GET", .path = "/missing"});
  ASSERT_TRUE(Until([&] { return answer->done; }));
  EXPECT_EQ(answer->response.status, 404);
}

TEST_F(EdgeTest, ManyRequestsAtOnceAllGetTheirOwnAnswer) {
  Serve({.batch_max = 3});
  Connect();
  std::vector<std::shared_ptr<Answer>> answers;
  answers.reserve(200);
  for (int i = 0; i < 200; ++i) {
    answers.push_back(Ask({.method = "POST", .path = "/echo", .body = std::to_string(i)}));
  }
  ASSERT_TRUE(Until([&] {
    for (const auto& answer : answers) {
      if (!answer->done) return false;
    }
    return true;
  }));
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(answers[i]->response.BodyString(), StrCat("hello ", i));
  }
  ASSERT_TRUE(Until([&] { return front_->stats().in_flight.load() == 0; }));
}

TEST_F(EdgeTest, LateAnswersAndTheirCallsEnd) {
  Serve();
  Connect();
  auto answer = Ask({.method = "GET", .path = "/open"});
  ASSERT_TRUE(Until([&] { return handler_.open.size() == 1; }));
  EXPECT_EQ(handler_.ended, 0);
  handler_.open[0]->OnResponse({.status = 201});
  EXPECT_EQ(handler_.ended, 0) << "a call must not die inside its own answer";
  handler_.open.clear();
  ASSERT_TRUE(Until([&] { return answer->done && handler_.ended == 1; }));
  EXPECT_EQ(answer->response.status, 201);
}

TEST_F(EdgeTest, StreamsFlowAndEnd) {
  Serve();
  Connect();
  auto answer = Ask({.method = "GET", .path = "/stream", .query = "watch=1"});
  ASSERT_TRUE(Until([&] { return answer->stream_status == 200; }));
  EXPECT_EQ(answer->stream_type, "application/json;stream=watch");
  EXPECT_TRUE(handler_.open[0]->OnChunk(api::MakeChunk("one\n")));
  ASSERT_TRUE(Until([&] { return answer->text == "one\n"; }));
  EXPECT_TRUE(handler_.open[0]->OnChunk(api::MakeChunk("two\n")));
  handler_.open[0]->OnStreamEnd(Status::Ok());
  handler_.open.clear();
  ASSERT_TRUE(Until([&] { return answer->done; }));
  EXPECT_TRUE(answer->end.ok()) << answer->end.ToString();
  EXPECT_EQ(answer->text, "one\ntwo\n");
  ASSERT_TRUE(Until([&] { return handler_.ended == 1; }));
}

TEST_F(EdgeTest, AStreamCutShortIsNotAnOrdinaryEnd) {
  Serve();
  Connect();
  auto answer = Ask({.method = "GET", .path = "/stream", .query = "watch=true"});
  ASSERT_TRUE(Until([&] { return answer->stream_status == 200; }));
  handler_.open[0]->OnStreamEnd(Status(Code::kInternal, "lost"));
  handler_.open.clear();
  ASSERT_TRUE(Until([&] { return answer->done; }));
  EXPECT_FALSE(answer->end.ok());
}

TEST_F(EdgeTest, GivingACallUpCancelsItOnTheServer) {
  Serve();
  Connect();
  auto stream = Ask({.method = "GET", .path = "/stream", .query = "watch=1"});
  auto plain = Ask({.method = "GET", .path = "/open"});
  ASSERT_TRUE(Until([&] { return handler_.open.size() == 2; }));
  calls_.clear();
  ASSERT_TRUE(Until([&] { return handler_.ended == 2; }));
  EXPECT_EQ(front_->stats().abandoned.load(), 2u);
  EXPECT_FALSE(stream->done);
  EXPECT_FALSE(plain->done);
  EXPECT_FALSE(handler_.open[0]->OnChunk(api::MakeChunk("nobody")) &&
               handler_.open[1]->OnChunk(api::MakeChunk("nobody")));
  handler_.open.clear();
  EXPECT_EQ(front_->stats().in_flight.load(), 0u);
}

TEST_F(EdgeTest, AReceiverThatTakesNoMoreEndsTheStream) {
  Serve();
  Connect();
  auto answer = Ask({.method = "GET", .path = "/stream", .query = "watch=1"});
  answer->accept = false;
  ASSERT_TRUE(Until([&] { return handler_.open.size() == 1; }));
  handler_.open[0]->OnChunk(api::MakeChunk("one\n"));
  ASSERT_TRUE(Until([&] { return answer->done && handler_.ended == 1; }));
  EXPECT_FALSE(answer->end.ok());
}

TEST_F(EdgeTest, MoreThanTheBoundIsTurnedAwayWith429) {
  Serve({.in_flight_max = 2, .client_part = 1});
  Connect();
  auto first = Ask({.method = "GET", .path = "/open"});
  auto second = Ask({.method = "GET", .path = "/open"});
  ASSERT_TRUE(Until([&] { return handler_.open.size() == 2; }));
  auto third = Ask({.method = "GET", .path = "/open"});
  ASSERT_TRUE(Until([&] { return third->done; }));
  EXPECT_EQ(third->response.status, 429);
  EXPECT_NE(third->response.BodyString().find("TooManyRequests"), std::string::npos);
  EXPECT_EQ(front_->stats().refused.load(), 1u);
  handler_.open[0]->OnResponse({});
  handler_.open.clear();
  ASSERT_TRUE(Until([&] { return front_->stats().in_flight.load() <= 1; }));
  auto fourth = Ask({.method = "GET", .path = "/hello"});
  ASSERT_TRUE(Until([&] { return fourth->done; }));
  EXPECT_EQ(fourth->response.status, 200);
}

TEST_F(EdgeTest, LongAnswersHoldNobodyElseUp) {
  Serve();
  HttpTransportConfig config;
  config.bearer_token = "greedy";
  Connect(config);
  std::vector<std::shared_ptr<Answer>> endless;
  endless.reserve(8);
  for (int i = 0; i < 8; ++i) endless.push_back(Ask({.method = "GET", .path = "/endless"}));
  ASSERT_TRUE(Until([&] { return handler_.pieces > 100; }));
  // One of them is made: the others are the same client's, and come behind it.
  EXPECT_EQ(handler_.requests.size(), 1u);
  const std::unique_ptr<HttpTransport> greedy = std::move(transport_);
  Connect({});
  for (int i = 0; i < 10; ++i) {
    auto answer = Ask({.method = "GET", .path = "/little"});
    ASSERT_TRUE(Until([&] { return answer->done; }));
    EXPECT_EQ(answer->response.status, 200);
  }
  EXPECT_EQ(handler_.requests.size(), 11u);
  handler_.enough = true;
  for (const auto& answer : endless) ASSERT_TRUE(Until([&] { return answer->done; }));
}

TEST_F(EdgeTest, OversizedBodiesGet413) {
  Serve();
  Connect();
  auto answer = Ask({.method = "POST", .path = "/echo", .body = std::string((3 << 20) + 1, 'x')});
  ASSERT_TRUE(Until([&] { return answer->done; }));
  EXPECT_EQ(answer->response.status, 413);
}

TEST_F(EdgeTest, ClosedFrontAnswers503AndCancels) {
  Serve();
  Connect();
  auto left = Ask({.method = "GET", .path = "/open"});
  ASSERT_TRUE(Until([&] { return handler_.open.size() == 1; }));
  handler_.open.clear();
  front_->Close();
  EXPECT_EQ(handler_.ended, 1);
  auto late = Ask({.method = "GET", .path = "/hello"});
  ASSERT_TRUE(Until([&] { return late->done && left->done; }));
  EXPECT_EQ(late->response.status, 503);
  EXPECT_EQ(left->response.status, 500);
}

TEST_F(EdgeTest, NobodyListeningSaysSo) {
  Serve();
  Stop();
  Connect();
  auto answer = Ask({.method = "GET", .path = "/hello"});
  auto watch = Ask({.method = "GET", .path = "/hello", .query = "watch=1"});
  ASSERT_TRUE(Until([&] { return answer->done && watch->done; }));
  for (const auto& one : {answer, watch}) {
    EXPECT_EQ(one->response.status, 503);
    Status status = client::StatusFromResponse(one->response.status, one->response.BodyString());
    EXPECT_TRUE(IsUnreachable(status)) << status.ToString();
    EXPECT_NE(status.message().find(StrCat("127.0.0.1:", port_)), std::string::npos)
        << status.message();
  }
}

TEST_F(EdgeTest, CertificatesBecomeCredentials) {
  WallTime from = clock_.Now() - std::chrono::hours(1);
  auto ca = net::GenerateCa("test-ca", from);
  ASSERT_TRUE(ca.ok());
  auto server = net::IssueCert(
      *ca,
      {.common_name = "server", .ip_addresses = {"127.0.0.1"}, .server = true, .not_before = from});
  auto client = net::IssueCert(*ca, {.common_name = "ada",
                                     .organizations = {"system:masters", "vision"},
                                     .client = true,
                                     .not_before = from});
  ASSERT_TRUE(server.ok() && client.ok());
  Serve({}, net::TlsServerConfig{server->cert_pem, server->key_pem, ca->cert_pem});
  client::ClusterAccess access;
  access.ca_pem = ca->cert_pem;
  access.client_cert_pem = client->cert_pem;
  access.client_key_pem = client->key_pem;
  Connect(TransportConfig(access), "https");
  auto answer = Ask({.method = "GET", .path = "/hello"});
  ASSERT_TRUE(Until([&] { return answer->done; }));
  EXPECT_EQ(answer->response.status, 200) << answer->response.BodyString();
  ASSERT_EQ(handler_.requests.size(), 1u);
  EXPECT_EQ(handler_.requests[0].credentials.certificate_common_name, "ada");
  EXPECT_EQ(handler_.requests[0].credentials.certificate_organizations,
            (std::vector<std::string>{"system:masters", "vision"}));
}

TEST_F(EdgeTest, CallsMayOutliveTheTransport) {
  Serve();
  Connect();
  auto answer = Ask({.method = "GET", .path = "/open"});
  ASSERT_TRUE(Until([&] { return handler_.open.size() == 1; }));
  transport_.reset();
  calls_.clear();
  ASSERT_TRUE(Until([&] { return handler_.ended == 1; }));
  EXPECT_FALSE(answer->done);
}

}  // namespace
}  // namespace swell::edge
