// ProgramServer and PodRelay between real sockets: a browser that speaks raw bytes on one side, and
// on the other an API server whose portforward leads to a pod that the test plays.
#include "ui/programs/program_server.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/strings.h"
#include "kube/edge/streams/port_forward_server.h"
#include "kube/edge/streams/upgrade.h"
#include "kube/net/net_testing.h"
#include "kube/net/reactor/reactor.h"

namespace swell::ui {
namespace {

// Knows one Service, whose pod jane may reach.
class OnePodServer final : public api::RestHandler {
 public:
  explicit OnePodServer(Executor& executor) : executor_(executor) {}

  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    tokens.push_back(request.credentials.bearer_token);
    if (request.credentials.bearer_token != "jane" || !request.user.name.empty()) {
      api::RestResponse refused;
      refused.status = 403;
      refused.body = {
          api::MakeChunk(R"({"kind":"Status","status":"Failure","code":403,"reason":"Forbidden",)"
                         R"("message":"pods \"board-1\" is forbidden"})")};
      sink->OnResponse(std::move(refused));
      return nullptr;
    }
    if (request.path == "/api/v1/namespaces/vision/endpoints/board") {
      api::RestResponse found;
      found.body = {api::MakeChunk(endpoints)};
      sink->OnResponse(std::move(found));
      return nullptr;
    }
    EXPECT_EQ(request.path, "/api/v1/namespaces/vision/pods/board-1/portforward");
    edge::Agreement agreement;
    api::RestResponse refusal;
    if (!edge::Negotiate(request.upgrade, edge::PortForwardSpdyProtocols(),
                         edge::PortForwardWebSocketProtocols(), &agreement, &refusal)) {
      sink->OnResponse(std::move(refusal));
      return nullptr;
    }
    auto wire = sink->OnUpgrade(agreement.headers);
    edge::ServePortForward(
        executor_, agreement, std::move(wire),
        {.pod = "board-1",
         .ports = {},
         .dial = [this](uint16_t port, const std::function<void(Result<api::DuplexPtr>)>& done) {
           if (port != 6006) return done(Status(Code::kUnavailable, "connection refused"));
           auto [theirs, ours] = api::MakePipe(executor_);
           Play(ours);
           done(theirs);
         }});
    return nullptr;
  }

  std::vector<std::string> tokens;  // of all requests
  std::vector<std::string> asked;   // what came to the pod, whole heads
  std::string says = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nSet-Cookie: a=b\r\n\r\nhello";
  std::vector<api::DuplexPtr> streams;
  std::string endpoints =
      R"({"kind":"Endpoints","metadata":{"name":"board","namespace":"vision"},"subsets":[)"
      R"({"addresses":[{"ip":"10.0.0.1","targetRef":{"kind":"Pod","name":"board-1"}}],)"
      R"("ports":[{"port":6006}]}]})";

 private:
  void Play(const api::DuplexPtr& stream) {
    streams.push_back(stream);
    auto heard = std::make_shared<std::string>();
    stream->Start({.on_data =
                       [this, heard, weak = std::weak_ptr(stream)](const api::Chunk& bytes) {
                         *heard += *bytes;
                         auto alive = weak.lock();
                         if (!alive || heard->find("\r\n\r\n") == std::string::npos) return;
                         asked.push_back(std::exchange(*heard, {}));
                         alive->Write(api::MakeChunk(says));
                       },
                   .on_end = [](const Status&) {}});
  }

  Executor& executor_;
};

class ProgramServerTest : public ::testing::Test {
 protected:
  ProgramServerTest() {
    const auto port = http_.Listen("127.0.0.1:0");
    EXPECT_TRUE(port.ok()) << port.status().ToString();
    port_ = *port;
    server_.SetPort({.loopback = true, .secure = false}, port_);
  }

  // The whole answer of one request, whose connection ends with it.
  std::string Ask(const std::string& line, const std::string& headers = "") {
    net::RawPeer peer(reactor_, port_);
    peer.Send(StrCat(line, " HTTP/1.1\r\nHost: localhost:", port_, "\r\nConnection: close\r\n",
                     headers, "\r\n"));
    peer.ExpectEof();
    return peer.received;
  }
  // Where the pages send the browser, without scheme and host.
  std::string Ticket(const std::string& session = "s") {
    const std::string url = server_.Open(session, "vision", "board", "127.0.0.1:1");
    const std::string before = StrCat("http://localhost:", port_);
    EXPECT_TRUE(url.starts_with(before)) << url;
    return url.substr(before.size());
  }
  // {path, the Cookie header} of a program that was opened.
  std::pair<std::string, std::string> Opened(const std::string& session = "s") {
    const std::string answer = Ask("GET " + Ticket(session));
    const auto between = [&answer](std::string_view from, char to) {
      const size_t at = answer.find(from);
      if (at == std::string::npos) return std::string("(none)");
      const size_t begin = at + from.size();
      return answer.substr(begin, answer.find(to, begin) - begin);
    };
    return {between("; Path=", ';'), StrCat("Cookie: ", between("Set-Cookie: ", ';'), "\r\n")};
  }
  static std::string StatusOf(const std::string& answer) { return answer.substr(9, 3); }

  net::Reactor reactor_;
  RealClock clock_;
  int made_ = 0;
  std::map<std::string, api::Credentials, std::less<>> sessions_{{"s", {.bearer_token = "jane"}},
                                                                 {"t", {.bearer_token = "john"}}};
  std::shared_ptr<OnePodServer> api_ = std::make_shared<OnePodServer>(reactor_);
  PodRelay relay_{reactor_, api_};
  ProgramServer server_{{.clock = clock_,
                         .secret = [this] { return StrCat("secret", ++made_); },
                         .use_session = [this](std::string_view id) -> const api::Credentials* {
                           const auto found = sessions_.find(id);
                           return found != sessions_.end() ? &found->second : nullptr;
                         },
                         .relay = &relay_}};
  net::HttpServer http_{reactor_, clock_, server_, {}};
  uint16_t port_ = 0;
};

TEST_F(ProgramServerTest, ATicketLeadsToTheProgramOnce) {
  const std::string ticket = Ticket();
  const std::string answer = Ask("GET " + ticket);
  EXPECT_EQ(StatusOf(answer), "200");
  for (const char* word : {"HttpOnly", "SameSite=Strict", "Path=/p/", "http-equiv=\"refresh\"",
                           "Cache-Control: no-store", "Referrer-Policy: no-referrer"}) {
    EXPECT_NE(answer.find(word), std::string::npos) << word << " is not in\n" << answer;
  }
  EXPECT_EQ(answer.find(ticket.substr(ticket.find('=') + 1)), std::string::npos) << answer;
  EXPECT_EQ(StatusOf(Ask("GET " + ticket)), "401");
  EXPECT_EQ(StatusOf(Ask("GET /open?ticket=guessed")), "401");
}

TEST_F(ProgramServerTest, TheProgramAnswersAsTheSessionsUser) {
  const auto [path, cookie] = Opened();
  const std::string answer = Ask(StrCat("GET ", path, "data/runs?a=b"),
                                 StrCat(cookie, "Authorization: Bearer forged\r\nAccept: */*\r\n"));
  EXPECT_EQ(StatusOf(answer), "200");
  EXPECT_NE(answer.find("hello"), std::string::npos) << answer;
  EXPECT_EQ(answer.find("Set-Cookie"), std::string::npos) << answer;
  ASSERT_EQ(api_->asked.size(), 1U);
  EXPECT_EQ(api_->asked[0],
            "GET /data/runs?a=b HTTP/1.1\r\nHost: board.vision\r\nAccept: */*\r\n\r\n");
  EXPECT_EQ(api_->tokens, (std::vector<std::string>{"jane", "jane"}));
}

TEST_F(ProgramServerTest, NobodyElseReachesIt) {
  const auto [path, cookie] = Opened();
  const auto [other_path, other_cookie] = Opened();
  EXPECT_EQ(StatusOf(Ask("GET " + path)), "401");
  EXPECT_EQ(StatusOf(Ask("GET " + path, other_cookie)), "401");
  EXPECT_EQ(StatusOf(Ask("GET /p//", cookie)), "401");
  EXPECT_EQ(StatusOf(Ask("GET /other", cookie)), "404");
  // Rights are the API server's to give, at each request.
  const auto [johns_path, johns_cookie] = Opened("t");
  const std::string refused = Ask("GET " + johns_path, johns_cookie);
  EXPECT_EQ(StatusOf(refused), "403");
  EXPECT_NE(refused.find("pods \"board-1\" is forbidden"), std::string::npos) << refused;
  EXPECT_TRUE(api_->asked.empty());
}

TEST_F(ProgramServerTest, OtherHostsOriginsAndWorkersAreRefused) {
  const auto [path, cookie] = Opened();
  net::RawPeer peer(reactor_, port_);
  peer.Send(StrCat("GET ", path, " HTTP/1.1\r\nHost: rebind.example:", port_,
                   "\r\nConnection: close\r\n", cookie, "\r\n"));
  peer.ExpectEof();
  EXPECT_EQ(StatusOf(peer.received), "403");
  EXPECT_EQ(StatusOf(Ask("POST " + path, cookie)), "403");
  const std::string pages = StrCat("Origin: http://127.0.0.1:", port_, "\r\n");
  EXPECT_EQ(StatusOf(Ask("POST " + path, StrCat(cookie, pages))), "403");
  const std::string own = StrCat("Origin: http://localhost:", port_, "\r\n");
  EXPECT_EQ(StatusOf(Ask("GET " + path, StrCat(cookie, "Service-Worker: script\r\n"))), "403");
  EXPECT_TRUE(api_->asked.empty());
  EXPECT_EQ(StatusOf(Ask("POST " + path, StrCat(cookie, own))), "200");
}

TEST_F(ProgramServerTest, ASessionsEndIsThePrograms) {
  const auto [path, cookie] = Opened();
  api_->says = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n";
  net::RawPeer peer(reactor_, port_);
  peer.Send(StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\n", cookie, "\r\n"));
  peer.Expect("part");
  // What is under way is cut, not completed.
  server_.EndSession("s");
  peer.ExpectEof();
  EXPECT_EQ(peer.received.find("\r\n0\r\n"), std::string::npos);
  EXPECT_EQ(StatusOf(Ask("GET " + path, cookie)), "401");
  const auto [expired_path, expired_cookie] = Opened();
  sessions_.erase("s");
  EXPECT_EQ(StatusOf(Ask("GET " + expired_path, expired_cookie)), "401");
}

TEST_F(ProgramServerTest, ProgramsThatDoNotAnswerAreTold) {
  const auto [path, cookie] = Opened();
  api_->says = "SSH-2.0\r\n\r\n";
  EXPECT_EQ(StatusOf(Ask("GET " + path, cookie)), "502");
  api_->endpoints = R"({"kind":"Endpoints","metadata":{"name":"board","namespace":"vision"}})";
  const std::string answer = Ask("GET " + path, cookie);
  EXPECT_EQ(StatusOf(answer), "502");
  EXPECT_NE(answer.find("Service vision/board has no pod that is ready"), std::string::npos);
  api_->endpoints =
      R"({"kind":"Endpoints","metadata":{"name":"board","namespace":"vision"},"subsets":[)"
      R"({"addresses":[{"targetRef":{"name":"board-1"}}],"ports":[{"port":7}]}]})";
  const std::string closed = Ask("GET " + path, cookie);
  EXPECT_EQ(StatusOf(closed), "502");
  EXPECT_NE(closed.find("connection refused"), std::string::npos) << closed;
}

// A browser that reads nothing holds the pod back: what waits here stays bounded.
TEST_F(ProgramServerTest, ASlowBrowserHoldsThePodBack) {
  const auto [path, cookie] = Opened();
  constexpr size_t kBody = 64 << 20;
  api_->says = StrCat("HTTP/1.1 200 OK\r\nContent-Length: ", kBody, "\r\n\r\n");
  net::RawPeer peer(reactor_, port_, 4096);
  peer.Send(StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\n", cookie, "\r\n"));
  peer.Expect("\r\n\r\n");
  peer.StopReading();
  const api::DuplexPtr pod = api_->streams.back();
  const auto piece = api::MakeChunk(std::string(64 << 10, 'x'));
  size_t sent = 0;
  // The pod's writer stops where its stream says so.
  bool held = false;
  const auto write = [&] {
    while (sent < kBody && pod->queued_bytes() < api::kDuplexHighWater) {
      pod->Write(piece);
      sent += piece->size();
    }
    return pod->queued_bytes() >= api::kDuplexHighWater;
  };
  // It is held for good when many turns of the loop move nothing.
  int still = 0;
  size_t before = 0;
  ASSERT_TRUE(reactor_.RunUntil(
      [&] {
        held = write();
        still = held && sent == before ? still + 1 : 0;
        before = sent;
        reactor_.Post([] {});
        return still > 2000 || sent == kBody;
      },
      net::kPatience));
  EXPECT_TRUE(held);
  EXPECT_LT(sent, kBody / 2);
  peer.SetReading(true);
  ASSERT_TRUE(reactor_.RunUntil(
      [&] {
        write();
        return peer.received.size() > kBody;
      },
      net::kPatience))
      << peer.received.size();
}

}  // namespace
}  // namespace swell::ui
