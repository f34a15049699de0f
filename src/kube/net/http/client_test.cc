#include "kube/net/http/client.h"

#include "base/strings.h"
#include "kube/net/http/load.h"
#include "kube/net/net_testing.h"

namespace swell::net {
namespace {

using std::chrono::milliseconds;

HttpRequest Request(const std::string& method, const std::string& target, std::string body = "") {
  HttpRequest request;
  request.method = method;
  request.target = target;
  request.body = std::move(body);
  return request;
}

class ClientTest : public ServerTest {
 protected:
  std::unique_ptr<HttpClient> Connect(ClientConfig config = {}) {
    if (config.base_url.empty())
      config.base_url = StrCat("http://127.0.0.1:", static_cast<int>(port));
    return std::move(HttpClient::Make(reactor, config)).value();
  }
  Result<HttpResponse> Fetch(HttpClient& client,
                             HttpRequest request,
                             Duration deadline = kPatience) {
    Result<HttpResponse> result(Status(Code::kInternal, "no answer"));
    bool done = false;
    client.Send(std::move(request), deadline, [&](Result<HttpResponse> response) {
      result = std::move(response);
      done = true;
    });
    EXPECT_FALSE(done) << "callbacks never come from inside Send";
    EXPECT_TRUE(Run([&] { return done; }));
    return result;
  }
};

// A server that says what it is told, whatever HTTP thinks of it.
class ScriptedServer {
 public:
  ScriptedServer(Reactor& reactor, std::vector<std::string> answers)
      : reactor_(reactor), answers_(std::move(answers)) {
    listener_ = std::move(ListenOn("127.0.0.1:0")).value();
    watch_ = std::move(reactor.WatchFd(listener_.fd.get(), [this] { Accept(); })).value();
  }
  uint16_t port() const { return listener_.port; }
  int connections = 0;
  std::string received;
  bool close_after_answer = true;
  void CloseAll() { peers_.clear(); }

 private:
  struct Peer {
    UniqueFd fd;
    std::unique_ptr<FdWatch> watch;
  };
  void Accept() {
    auto accepted = AcceptFrom(listener_);
    if (!accepted.ok()) return;
    ++connections;
    auto peer = std::make_unique<Peer>();
    peer->fd = std::move(accepted->fd);
    peer->watch = std::move(reactor_.WatchFd(peer->fd.get(), [this, raw = peer.get()] {
                    Answer(raw);
                  })).value();
    peers_.push_back(std::move(peer));
  }
  void Answer(Peer* peer) {
    char buffer[4096];
    ssize_t got = recv(peer->fd.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (got > 0) received.append(buffer, static_cast<size_t>(got));
    std::string answer = next_ < answers_.size() ? answers_[next_++] : "";
    if (got > 0 && !answer.empty())
      send(peer->fd.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    if (got <= 0 || close_after_answer) {
      peer->watch = nullptr;
      peer->fd = UniqueFd();
    }
  }

  Reactor& reactor_;
  std::vector<std::string> answers_;
  size_t next_ = 0;
  Listener listener_;
  std::unique_ptr<FdWatch> watch_;
  std::vector<std::unique_ptr<Peer>> peers_;
};

TEST_F(ClientTest, SendsAndKeepsTheConnection) {
  Serve();
  auto client = Connect();
  for (int i = 0; i < 3; ++i) {
    auto response = Fetch(*client, Request("POST", "/x?y=1", StrCat("body", i)));
    ASSERT_TRUE(response.ok()) << response.status().ToString();
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(BodyText(response->body), StrCat("POST /x?y=1 [body", i, "]\n"));
  }
  EXPECT_EQ(server->stats().connections_accepted, 1u);
}

TEST_F(ClientTest, SendsDefaultHeadersAndThePrefix) {
  Serve();
  Headers got;
  std::string target;
  handler.fn = [&](std::shared_ptr<Exchange> exchange) {
    got = exchange->request().headers;
    target = exchange->request().target;
    exchange->Respond({404, {{"X-Why", "none"}}, {}});
  };
  ClientConfig config;
  config.base_url = StrCat("http://localhost:", static_cast<int>(port), "/prefix/");
  config.default_headers = {{"Authorization", "Bearer a"}, {"Accept", "application/json"}};
  auto client = Connect(config);
  HttpRequest request;
  request.method = "GET";
  request.path = "/api";
  request.query = "limit=1";
  request.headers = {{"accept", "text/plain"}};
  auto response = Fetch(*client, request);
  ASSERT_TRUE(response.ok()) << response.status().ToString();
  EXPECT_EQ(response->status, 404) << "an HTTP error is a response";
  EXPECT_EQ(*FindHeader(response->headers, "x-why"), "none");
  EXPECT_EQ(target, "/prefix/api?limit=1");
  EXPECT_EQ(*FindHeader(got, "Authorization"), "Bearer a");
  EXPECT_EQ(*FindHeader(got, "Accept"), "text/plain");
  EXPECT_EQ(*FindHeader(got, "Host"), StrCat("localhost:", static_cast<int>(port)));
  client->SetDefaultHeader("authorization", "Bearer b");
  ASSERT_TRUE(Fetch(*client, request).ok());
  EXPECT_EQ(*FindHeader(got, "Authorization"), "Bearer b");
}

TEST_F(ClientTest, BoundsItsConnectionsAndLetsTheRestWait) {
  Serve();
  std::vector<std::shared_ptr<Exchange>> held;
  handler.fn = [&](std::shared_ptr<Exchange> exchange) { held.push_back(std::move(exchange)); };
  auto client = Connect({.max_connections = 2, .max_waiting = 3});
  int answered = 0;
  Status refused;
  for (int i = 0; i < 6; ++i) {
    client->Send(Request("GET", StrCat("/", i)), kPatience, [&](Result<HttpResponse> response) {
      if (response.ok())
        ++answered;
      else
        refused = response.status();
    });
  }
  ASSERT_TRUE(Run([&] { return held.size() == 2 && !refused.ok(); }));
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  while (answered < 5) {
    ASSERT_TRUE(Run([&] { return !held.empty(); }));
    held.back()->Respond({200, {}, {}});
    held.pop_back();
    int before = answered;
    ASSERT_TRUE(Run([&] { return answered > before; }));
  }
  EXPECT_EQ(server->stats().connections_accepted, 2u);
}

TEST_F(ClientTest, WhatIsUrgentGoesBeforeOthersThatWait) {
  Serve();
  std::vector<std::shared_ptr<Exchange>> held;
  handler.fn = [&](std::shared_ptr<Exchange> exchange) { held.push_back(std::move(exchange)); };
  auto client = Connect({.max_connections = 1});
  for (const char* path : {"/first", "/second", "/urgent", "/third", "/urgent-too"}) {
    HttpRequest request = Request("GET", path);
    request.urgent = std::string_view(path).starts_with("/urgent");
    client->Send(std::move(request), kPatience, [](Result<HttpResponse>) {});
  }
  std::string order;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(Run([&] { return !held.empty(); }));
    order += held.back()->request().path;
    held.back()->Respond({200, {}, {}});
    held.clear();
  }
  EXPECT_EQ(order, "/first/urgent/urgent-too/second/third");
}

TEST_F(ClientTest, ReportsRefusedConnections) {
  Serve();
  server = nullptr;
  auto client = Connect();
  auto response = Fetch(*client, Request("GET", "/a"));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.status().code(), Code::kUnavailable);
  const std::string& message = response.status().message();
  EXPECT_TRUE(message.starts_with("GET http://127.0.0.1:")) << message;
  EXPECT_TRUE(message.ends_with("/a: connect: Connection refused")) << message;
}

TEST_F(ClientTest, ReportsNamesThatDoNotResolve) {
  auto client = Connect({.base_url = "http://no-such-host.invalid"});
  auto response = Fetch(*client, Request("GET", "/a"));
  ASSERT_FALSE(response.ok());
  EXPECT_NE(response.status().message().find("no-such-host.invalid"), std::string::npos);
}

TEST_F(ClientTest, RefusesWhatItCannotSend) {
  EXPECT_FALSE(HttpClient::Make(reactor, {.base_url = "nonsense"}).ok());
  Serve();
  auto client = Connect();
  auto response = Fetch(*client, Request("GET", "/a b"));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.status().code(), Code::kBadRequest);
}

TEST_F(ClientTest, KeepsDeadlines) {
  Serve();
  std::vector<std::shared_ptr<Exchange>> held;
  handler.fn = [&](std::shared_ptr<Exchange> exchange) { held.push_back(std::move(exchange)); };
  auto client = Connect({.max_connections = 1});
  int timeouts = 0;
  for (int i = 0; i < 2; ++i) {  // one on the wire, one waiting for it
    client->Send(Request("GET", "/"), milliseconds(10), [&](Result<HttpResponse> response) {
      if (response.status().code() == Code::kTimeout) ++timeouts;
    });
  }
  EXPECT_TRUE(Run([&] { return timeouts == 2; }));
  handler.fn = [](std::shared_ptr<Exchange> exchange) { exchange->Respond({200, {}, {}}); };
  EXPECT_TRUE(Fetch(*client, Request("GET", "/")).ok()) << "a new connection replaces the lost one";
}

TEST_F(ClientTest, ACancelledRequestIsNeverHeardOf) {
  Serve();
  HoldRequests();
  auto client = Connect();
  bool heard = false;
  RequestId id =
      client->Send(Request("GET", "/"), kPatience, [&](Result<HttpResponse>) { heard = true; });
  ASSERT_TRUE(Run([&] { return held != nullptr; }));
  client->Cancel(id);
  client->Cancel(id);
  EXPECT_TRUE(Run([&] { return closed; })) << "the server learns of it";
  id = client->Send(Request("GET", "/"), kPatience, [&](Result<HttpResponse>) { heard = true; });
  client->Cancel(id);
  reactor.RunFor(milliseconds(5));
  EXPECT_FALSE(heard);
}

TEST_F(ClientTest, DestroyingTheClientCancelsEverything) {
  Serve();
  HoldRequests();
  auto client = Connect();
  bool heard = false;
  client->Send(Request("GET", "/"), kPatience, [&](Result<HttpResponse>) { heard = true; });
  ASSERT_TRUE(Run([&] { return held != nullptr; }));
  client = nullptr;
  EXPECT_TRUE(Run([&] { return closed; }));
  EXPECT_FALSE(heard);
}

TEST_F(ClientTest, ACallbackMayDestroyTheClient) {
  Serve();
  auto client = Connect();
  bool done = false;
  client->Send(Request("GET", "/"), kPatience, [&](Result<HttpResponse> response) {
    EXPECT_TRUE(response.ok());
    client = nullptr;
    done = true;
  });
  EXPECT_TRUE(Run([&] { return done; }));
}

TEST_F(ClientTest, SendsAgainOnceWhenAPooledConnectionWasStale) {
  const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  // The second request gets no answer but the end; a new connection serves it.
  ScriptedServer scripted(reactor, {ok, "", ok});
  scripted.close_after_answer = false;
  auto client =
      Connect({.base_url = StrCat("http://127.0.0.1:", static_cast<int>(scripted.port()))});
  ASSERT_TRUE(Fetch(*client, Request("GET", "/1")).ok());
  bool done = false;
  scripted.close_after_answer = true;
  client->Send(Request("GET", "/2"), kPatience, [&](Result<HttpResponse> response) {
    EXPECT_TRUE(response.ok()) << response.status().ToString();
    done = true;
  });
  EXPECT_TRUE(Run([&] { return done; }));
  EXPECT_EQ(scripted.connections, 2);
  EXPECT_EQ(CountOf(scripted.received, "GET /2"), 2u);
}

TEST_F(ClientTest, DoesNotRepeatAPost) {
  const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  ScriptedServer scripted(reactor, {ok, "", ok});
  scripted.close_after_answer = false;
  auto client =
      Connect({.base_url = StrCat("http://127.0.0.1:", static_cast<int>(scripted.port()))});
  ASSERT_TRUE(Fetch(*client, Request("GET", "/1")).ok());
  scripted.close_after_answer = true;
  auto response = Fetch(*client, Request("POST", "/2"));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.status().code(), Code::kUnavailable);
  EXPECT_EQ(CountOf(scripted.received, "POST /2"), 1u);
}

TEST_F(ClientTest, ReportsBrokenAnswers) {
  ScriptedServer scripted(reactor, {"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nshort",
                                    "nonsense\n", "HTTP/1.1 101 Switching Protocols\r\n\r\n"});
  auto client =
      Connect({.base_url = StrCat("http://127.0.0.1:", static_cast<int>(scripted.port()))});
  for (const char* what : {"within its answer", "malformed answer", "101"}) {
    auto response = Fetch(*client, Request("GET", "/"));
    ASSERT_FALSE(response.ok());
    EXPECT_EQ(response.status().code(), Code::kUnavailable);
    EXPECT_NE(response.status().message().find(what), std::string::npos)
        << response.status().message();
  }
}

TEST_F(ClientTest, AnAnswerMayEndWithTheConnection) {
  ScriptedServer scripted(reactor, {"HTTP/1.0 200 OK\r\n\r\nold school"});
  auto client =
      Connect({.base_url = StrCat("http://127.0.0.1:", static_cast<int>(scripted.port()))});
  auto response = Fetch(*client, Request("GET", "/"));
  ASSERT_TRUE(response.ok()) << response.status().ToString();
  EXPECT_EQ(BodyText(response->body), "old school");
}

TEST_F(ClientTest, BoundsTheAnswer) {
  Serve();
  handler.fn = [](std::shared_ptr<Exchange> exchange) {
    exchange->Respond({200, {}, {MakeChunk(std::string(100'000, 'x'))}});
  };
  auto client = Connect({.max_response_bytes = 1000});
  auto response = Fetch(*client, Request("GET", "/"));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.status().code(), Code::kTooLarge);
}

TEST_F(ClientTest, DropsIdleConnections) {
  Serve();
  auto client = Connect({.idle_timeout = milliseconds(5)});
  ASSERT_TRUE(Fetch(*client, Request("GET", "/")).ok());
  EXPECT_TRUE(Run([&] { return server->stats().connections_open == 0; }));
  EXPECT_TRUE(Fetch(*client, Request("GET", "/")).ok());
}

TEST_F(ClientTest, StreamsAWatch) {
  Serve();
  std::shared_ptr<Exchange> held, silent;
  handler.fn = [&](std::shared_ptr<Exchange> exchange) {
    if (exchange->request().path != "/watch") {
      silent = std::move(exchange);
      return;
    }
    exchange->StartStream(200, {{"Content-Type", "application/json"}});
    exchange->Write(MakeChunk("one\n"));
    held = std::move(exchange);
  };
  auto client = Connect({.header_timeout = milliseconds(300)});
  int status = 0;
  std::string got;
  bool ended = false;
  client->Stream(
      Request("GET", "/watch"), [&](int s, const Headers&) { status = s; },
      [&](std::string_view data) { got += data; },
      [&](Status why) {
        EXPECT_TRUE(why.ok()) << why.ToString();
        ended = true;
      });
  ASSERT_TRUE(Run([&] { return got == "one\n"; }));
  EXPECT_EQ(status, 200);
  // The deadline of a later request does not end a stream that has begun.
  Status late;
  client->Stream(
      Request("GET", "/late"), [](int, const Headers&) {}, [](std::string_view) {},
      [&](Status why) { late = std::move(why); });
  ASSERT_TRUE(Run([&] { return late.code() == Code::kTimeout; }));
  held->Write(MakeChunk("two\n"));
  ASSERT_TRUE(Run([&] { return got == "one\ntwo\n"; }));
  held->EndStream();
  EXPECT_TRUE(Run([&] { return ended; }));
}

TEST_F(ClientTest, ABrokenStreamEndsWithAnError) {
  Serve();
  handler.fn = [&](std::shared_ptr<Exchange> exchange) {
    exchange->StartStream(200, {});
    exchange->Write(MakeChunk("one\n"));
    reactor.After(milliseconds(1), [exchange] { exchange->Abort(); });
  };
  auto client = Connect();
  Status why;
  client->Stream(
      Request("GET", "/"), [](int, const Headers&) {}, [](std::string_view) {},
      [&](Status status) { why = std::move(status); });
  EXPECT_TRUE(Run([&] { return !why.ok(); }));
  EXPECT_EQ(why.code(), Code::kUnavailable);
}

TEST_F(ClientTest, AStreamMayBeCancelledFromItsOwnCallback) {
  Serve();
  bool closed = false;
  std::shared_ptr<Exchange> held;
  handler.fn = [&](std::shared_ptr<Exchange> exchange) {
    exchange->OnClose([&] { closed = true; }, reactor);
    exchange->StartStream(200, {});
    exchange->Write(MakeChunk("one\n"));
    exchange->Write(MakeChunk("two\n"));
    held = std::move(exchange);
  };
  auto client = Connect();
  int calls = 0;
  bool ended = false;
  RequestId id = 0;
  id = client->Stream(
      Request("GET", "/"), [](int, const Headers&) {},
      [&](std::string_view) {
        ++calls;
        client->Cancel(id);
      },
      [&](Status) { ended = true; });
  EXPECT_TRUE(Run([&] { return closed; }));
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(ended);
}

TEST_F(ClientTest, AStreamWithoutAHeadTimesOut) {
  Serve();
  std::shared_ptr<Exchange> held;
  handler.fn = [&](std::shared_ptr<Exchange> exchange) { held = std::move(exchange); };
  auto client = Connect({.header_timeout = milliseconds(10)});
  Status why;
  client->Stream(
      Request("GET", "/"), [](int, const Headers&) {}, [](std::string_view) {},
      [&](Status status) { why = std::move(status); });
  EXPECT_TRUE(Run([&] { return !why.ok(); }));
  EXPECT_EQ(why.code(), Code::kTimeout);
}

TEST_F(ClientTest, UpgradesAndTalks) {
  Serve();
  std::shared_ptr<ByteStream> echo;
  handler.fn = [&](std::shared_ptr<Exchange> exchange) {
    if (FindHeader(exchange->request().headers, "Upgrade") == nullptr ||
        exchange->request().path == "/no") {
      exchange->Respond(StatusResponse(Status(Code::kForbidden, "no exec here")));
      return;
    }
    echo = exchange->Upgrade({{"Upgrade", "echo"}});
    echo->Start(
        reactor, [&](std::string bytes) { echo->Write(MakeChunk("<" + bytes + ">")); },
        [&](Status) { echo = nullptr; });
  };
  auto client = Connect();
  HttpRequest request = Request("GET", "/exec");
  request.headers = {{"Upgrade", "echo"}};
  std::shared_ptr<ByteStream> stream;
  std::string got;
  client->Upgrade(request, [&](Result<HttpClient::UpgradeResult> result) {
    ASSERT_TRUE(result.ok()) << result.status().ToString();
    EXPECT_EQ(*FindHeader(result->response.headers, "upgrade"), "echo");
    stream = result->stream;
    stream->Start(
        reactor, [&](std::string bytes) { got += bytes; }, [](Status) {});
    stream->Write(MakeChunk("ping"));
  });
  EXPECT_TRUE(Run([&] { return got == "<ping>"; }));
  stream = nullptr;
  EXPECT_TRUE(Run([&] { return echo == nullptr; }));

  request.target = "/no";
  int status = 0;
  client->Upgrade(request, [&](Result<HttpClient::UpgradeResult> result) {
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->stream, nullptr);
    status = result->response.status;
    EXPECT_NE(BodyText(result->response.body).find("no exec here"), std::string::npos);
  });
  EXPECT_TRUE(Run([&] { return status == 403; }));
}

TEST_F(ClientTest, TalksOverUnixSockets) {
  std::string path = StrCat(testing::TempDir(), "/swell_client_test_", getpid(), ".sock");
  Serve();
  ASSERT_TRUE(server->Listen("unix:" + path).ok());
  PeerIdentity seen;
  handler.fn = [&](std::shared_ptr<Exchange> exchange) {
    seen = exchange->request().peer;
    exchange->Respond({200, {}, {}});
  };
  auto client = Connect({.base_url = "unix://" + path});
  auto response = Fetch(*client, Request("GET", "/"));
  ASSERT_TRUE(response.ok()) << response.status().ToString();
  EXPECT_EQ(seen.remote, "unix");
  EXPECT_EQ(seen.uid, static_cast<int64_t>(getuid()));
}

TEST_F(ClientTest, GeneratesLoad) {
  Serve();
  LoadOptions options;
  options.base_url = StrCat("http://127.0.0.1:", static_cast<int>(port));
  options.connections = 4;
  options.requests = 200;
  options.duration = kPatience;
  options.make_request = [](uint64_t index) { return Request("GET", StrCat("/", index)); };
  auto report = RunLoad(reactor, options);
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_EQ(report->requests, 200u);
  EXPECT_EQ(report->errors, 0u);
  EXPECT_EQ(report->latency.count(), 200u);
  EXPECT_GT(report->bytes, 0u);
  EXPECT_EQ(server->stats().connections_accepted, 4u);
  options.expected_status = 404;
  report = RunLoad(reactor, options);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->errors, 200u);
  EXPECT_NE(report->first_error.message().find("HTTP status 200"), std::string::npos);
}

TEST(LatencyHistogramTest, QuantilesAreWithinSevenPercent) {
  LatencyHistogram histogram;
  EXPECT_EQ(histogram.Quantile(0.5), Duration::zero());
  for (int i = 1; i <= 1000; ++i) histogram.Add(std::chrono::microseconds(i));
  EXPECT_NEAR(static_cast<double>(histogram.Quantile(0.5).count()), 500'000, 35'000);
  EXPECT_NEAR(static_cast<double>(histogram.Quantile(0.99).count()), 990'000, 70'000);
  EXPECT_EQ(histogram.Quantile(1), std::chrono::microseconds(1000));
  EXPECT_EQ(histogram.Max(), std::chrono::microseconds(1000));
  histogram.Add(Duration(-5));
  EXPECT_EQ(histogram.Quantile(0), Duration::zero());
  for (int64_t ns : {0, 1, 15, 16, 17, 31, 32, 33}) {
    LatencyHistogram one;
    one.Add(Duration(ns));
    EXPECT_EQ(one.Quantile(1).count(), ns);
  }
}

}  // namespace
}  // namespace swell::net
