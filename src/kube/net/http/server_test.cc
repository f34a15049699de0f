#include "kube/net/http/server.h"

#include <sys/resource.h>

#include <algorithm>
#include <deque>
#include <thread>

#include "base/strings.h"
#include "kube/net/net_testing.h"

namespace swell::net {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kClose = "Connection: close\r\n";

std::string Get(std::string_view path, std::string_view extra = "") {
  return StrCat("GET ", path, " HTTP/1.1\r\nHost: a\r\n", extra, "\r\n");
}

TEST_F(ServerTest, AnswersOneRequest) {
  Serve();
  std::string answer = Talk(Get("/x", kClose));
  EXPECT_EQ(answer.substr(0, 17), "HTTP/1.1 200 OK\r\n");
  EXPECT_NE(answer.find("\r\nContent-Length: 10\r\n"), std::string::npos) << answer;
  EXPECT_NE(answer.find("\r\nDate: "), std::string::npos);
  EXPECT_NE(answer.find("\r\n\r\nGET /x []\n"), std::string::npos);
}

TEST_F(ServerTest, KeepsTheConnection) {
  Serve();
  RawPeer peer(reactor, port);
  for (int i = 0; i < 5; ++i) {
    std::string path = StrCat("/", i);
    peer.Send(Get(path));
    peer.Expect(StrCat("GET ", path, " []\n"));
  }
  EXPECT_EQ(server->stats().connections_accepted, 1u);
  EXPECT_EQ(server->stats().requests, 5u);
}

TEST_F(ServerTest, AnswersPipelinedRequestsInOrderWhoeverIsReadyFirst) {
  Serve();
  std::vector<std::shared_ptr<Exchange>> held;
  handler.fn = [&](std::shared_ptr<Exchange> exchange) {
    std::string path = exchange->request().path;
    if (path == "/slow") {
      reactor.After(milliseconds(5), [exchange] {
        exchange->Respond({200, {}, {MakeChunk("1st\n")}});
      });
    } else {
      exchange->Respond({200, {}, {MakeChunk("2nd\n")}});
    }
  };
  std::string answer = Talk(Get("/slow") + Get("/fast", kClose));
  EXPECT_LT(answer.find("1st\n"), answer.find("2nd\n"));
  EXPECT_NE(answer.find("2nd\n"), std::string::npos);
}

TEST_F(ServerTest, ReadsBodiesOfBothFramings) {
  Serve();
  std::string answer = Talk(
      "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
      "PUT /b HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n");
  EXPECT_NE(answer.find("POST /a [hello]"), std::string::npos) << answer;
  EXPECT_NE(answer.find("PUT /b [abcdef]"), std::string::npos) << answer;
}

TEST_F(ServerTest, AsksForTheBodyWhenTheClientWaitsForThat) {
  Serve();
  RawPeer peer(reactor, port);
  peer.Send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  peer.Expect("HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(handled, 0);
  peer.Send("hi");
  peer.Expect("POST / [hi]");
}

TEST_F(ServerTest, HeadGetsTheHeadOnly) {
  Serve();
  std::string answer = Talk("HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_NE(answer.find("Content-Length: 10\r\n"), std::string::npos) << answer;
  EXPECT_EQ(answer.substr(answer.size() - 4), "\r\n\r\n");
}

TEST_F(ServerTest, NoContentHasNoLength) {
  Serve();
  handler.fn = [](std::shared_ptr<Exchange> exchange) { exchange->Respond({204, {}, {}}); };
  std::string answer = Talk(Get("/", kClose));
  EXPECT_EQ(answer.find("Content-Length"), std::string::npos) << answer;
}

TEST_F(ServerTest, SpeaksHttp10) {
  Serve();
  std::string answer = Talk("GET / HTTP/1.0\r\n\r\n");
  EXPECT_NE(answer.find("Connection: close"), std::string::npos);
  RawPeer peer(reactor, port);
  peer.Send("GET /1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  peer.Expect("Connection: keep-alive\r\n");
  peer.Expect("GET /1 []");
  peer.Send("GET /2 HTTP/1.0\r\n\r\n");
  peer.Expect("GET /2 []");
  peer.ExpectEof();
}

TEST_F(ServerTest, RefusesMalformedRequestsWithAStatusAndCloses) {
  Serve();
  std::string answer = Talk(
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
      "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 400");
  EXPECT_NE(answer.find("Content-Type: application/json"), std::string::npos);
  EXPECT_NE(answer.find(R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",)"
                        R"("message":"both Content-Length and Transfer-Encoding",)"
                        R"("reason":"BadRequest","code":400})"),
            std::string::npos)
      << answer;
  EXPECT_EQ(handled, 0);
  EXPECT_EQ(server->stats().bad_requests, 1u);
}

TEST_F(ServerTest, AGoodRequestBeforeABadOneIsStillAnswered) {
  Serve();
  std::string answer = Talk(Get("/good") + "garbage\r\n\r\n");
  EXPECT_NE(answer.find("GET /good []"), std::string::npos);
  EXPECT_NE(answer.find("HTTP/1.1 400"), std::string::npos);
}

TEST_F(ServerTest, RefusesALargeBodyWithoutReadingIt) {
  Serve({.body_bytes = 1000});
  RawPeer peer(reactor, port);
  peer.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n");
  peer.Expect("HTTP/1.1 413");
  peer.Expect("\"reason\":\"RequestEntityTooLarge\",\"code\":413");
  peer.ExpectEof();
  EXPECT_EQ(handled, 0);
}

TEST_F(ServerTest, RefusesALargeChunkedBodyAtTheLimit) {
  Serve({.body_bytes = 1000});
  RawPeer peer(reactor, port);
  peer.Send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  std::string chunk = "200\r\n" + std::string(0x200, 'x') + "\r\n";
  peer.Send(chunk);
  peer.Send(chunk);
  peer.Expect("HTTP/1.1 413");
  // The client sees the answer although it continues to send.
  for (int i = 0; i < 100; ++i) peer.Send(chunk);
  peer.ExpectEof();
  EXPECT_EQ(handled, 0);
}

TEST_F(ServerTest, ABodyAtTheLimitIsFine) {
  Serve({.body_bytes = 1000});
  RawPeer peer(reactor, port);
  peer.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n" + std::string(1000, 'x'));
  peer.Expect("HTTP/1.1 200");
}

TEST_F(ServerTest, RefusesALongHead) {
  Serve({.header_bytes = 1000});
  EXPECT_EQ(Talk(Get("/", "X: " + std::string(2000, 'a') + "\r\n")).substr(0, 12), "HTTP/1.1 431");
}

TEST_F(ServerTest, EndsAHeadThatTricklesIn) {
  Serve({.header_timeout = milliseconds(20)});
  RawPeer peer(reactor, port);
  peer.Send("GET / HT");
  peer.Expect("HTTP/1.1 408");
  peer.ExpectEof();
  EXPECT_EQ(server->stats().timeouts, 1u);
}

TEST_F(ServerTest, EndsABodyThatTricklesIn) {
  Serve({.body_timeout = milliseconds(20)});
  RawPeer peer(reactor, port);
  peer.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
  peer.Expect("HTTP/1.1 408");
  peer.ExpectEof();
}

TEST_F(ServerTest, TheBodyThatHasBeenComingLongestMakesRoom) {
  ServerConfig config;
  config.coming_bytes = 2500;
  Serve(config);
  RawPeer first(reactor, port), second(reactor, port), third(reactor, port);
  for (RawPeer* peer : {&first, &second, &third}) {
    // The answer to the head comes when what the peers before sent has been read.
    peer->Send(
        "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1001\r\n\r\n");
    peer->Expect("100 Continue");
    peer->Send(std::string(1000, 'x'));
  }
  first.ExpectEof();
  EXPECT_EQ(server->stats().overflows, 1u);
  // The others continue. What they sent no longer counts once it is complete.
  for (RawPeer* peer : {&second, &third}) {
    peer->Send("z");
    peer->Expect("xz]\n");
  }
  RawPeer large(reactor, port);
  large.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2400\r\n\r\n" + std::string(2400, 'w'));
  large.Expect("POST / [www");
  EXPECT_EQ(server->stats().overflows, 1u);
}

TEST_F(ServerTest, EndsConnectionsThatSayNothing) {
  Serve({.header_timeout = milliseconds(10), .idle_timeout = milliseconds(10)});
  RawPeer silent(reactor, port);
  silent.ExpectEof();
  RawPeer idle(reactor, port);
  idle.Send(Get("/"));
  idle.Expect("GET / []");
  idle.ExpectEof();
  EXPECT_EQ(idle.received.find("408"), std::string::npos) << "idleness is not an error";
}

TEST_F(ServerTest, AHandlerMayTakeItsTime) {
  Serve({.header_timeout = milliseconds(5),
         .body_timeout = milliseconds(5),
         .idle_timeout = milliseconds(5)});
  handler.fn = [&](std::shared_ptr<Exchange> exchange) {
    reactor.After(milliseconds(50), [exchange] {
      exchange->Respond({200, {}, {MakeChunk("late")}});
    });
  };
  RawPeer peer(reactor, port);
  peer.Send(Get("/"));
  peer.Expect("late");
}

TEST_F(ServerTest, EndsAPeerThatReadsNothing) {
  Serve({.write_stall_timeout = milliseconds(20)});
  handler.fn = [](std::shared_ptr<Exchange> exchange) {
    exchange->Respond({200, {}, {MakeChunk(std::string(32 << 20, 'x'))}});
  };
  RawPeer peer(reactor, port, 4096);
  peer.StopReading();
  peer.Send(Get("/"));
  EXPECT_TRUE(Run([&] { return server->stats().timeouts == 1; }));
  EXPECT_TRUE(Run([&] { return server->stats().connections_open == 0; }));
}

TEST_F(ServerTest, EndsPeersThatReadNothingSoonerWhereMuchWaits) {
  Serve({.write_stall_timeout = std::chrono::minutes(5),
         .unread_bytes = 32 << 20,
         .crowded_stall_timeout = milliseconds(20)});
  handler.fn = [](std::shared_ptr<Exchange> exchange) {
    exchange->Respond({200, {}, {MakeChunk(std::string(24 << 20, 'x'))}});
  };
  RawPeer one(reactor, port, 4096), two(reactor, port, 4096);
  for (RawPeer* peer : {&one, &two}) {
    peer->StopReading();
    peer->Send(Get("/"));
  }
  // Without the first that is cut, what waits may be little again.
  EXPECT_TRUE(Run([&] { return server->stats().timeouts > 0; }));
}

TEST_F(ServerTest, SendsLargeAnswersWhole) {
  Serve();
  Body body;
  std::string all;
  for (int i = 0; i < 300; ++i) {
    std::string piece(static_cast<size_t>(i) * 97, static_cast<char>('a' + i % 26));
    all += piece;
    body.push_back(MakeChunk(std::move(piece)));
  }
  handler.fn = [&](std::shared_ptr<Exchange> exchange) { exchange->Respond({200, {}, body}); };
  std::string answer = Talk(Get("/", kClose));
  size_t start = answer.find("\r\n\r\n") + 4;
  EXPECT_TRUE(answer.substr(start) == all) << answer.size() << " " << all.size();
}

TEST_F(ServerTest, APeerThatPipelinesWithoutReadingDoesNotPileUpAnswers) {
  Serve();
  std::string big(1 << 20, 'x');
  handler.fn = [&](std::shared_ptr<Exchange> exchange) {
    ++handled;
    exchange->Respond({200, {}, {MakeChunk(big)}});
  };
  RawPeer peer(reactor, port, 4096);
  peer.StopReading();
  std::string many;
  for (int i = 0; i < 500; ++i) many += Get("/");
  peer.Send(many);
  ASSERT_TRUE(Run([&] { return handled >= 1; }));
  reactor.RunFor(milliseconds(20));
  EXPECT_LT(handled, 30) << "each answer is 1 MiB";
  peer.SetReading(true);
  EXPECT_TRUE(Run([&] { return handled > 100; })) << "it continues when the peer reads";
}

TEST_F(ServerTest, TurnsAwayConnectionsOverTheLimitWhereNoneWaits) {
  Serve({.max_connections = 2, .address_part = 1});
  std::vector<std::shared_ptr<Exchange>> asked;
  handler.fn = [&](std::shared_ptr<Exchange> exchange) { asked.push_back(std::move(exchange)); };
  RawPeer first(reactor, port);
  RawPeer second(reactor, port);
  first.Send(Get("/"));
  second.Send(Get("/"));
  ASSERT_TRUE(Run([&] { return asked.size() == 2; }));
  RawPeer third(reactor, port);
  third.Expect("HTTP/1.1 503");
  third.ExpectEof();
  asked[0]->Respond({200, {}, {MakeChunk("done\n")}});
  first.Expect("done\n");
  RawPeer fourth(reactor, port);
  fourth.Send(Get("/"));
  ASSERT_TRUE(Run([&] { return asked.size() == 3; }));
}

TEST_F(ServerTest, WhoeverWaitedLongestForARequestMakesRoom) {
  Serve({.max_connections = 3, .address_part = 1});
  std::shared_ptr<Exchange> asked;
  RawPeer answered(reactor, port);
  answered.Send(Get("/"));
  answered.Expect("200 OK");
  RawPeer silent(reactor, port);
  RawPeer busy(reactor, port);
  handler.fn = [&](std::shared_ptr<Exchange> exchange) { asked = std::move(exchange); };
  busy.Send(Get("/"));
  ASSERT_TRUE(Run([&] { return asked != nullptr; }));
  RawPeer one(reactor, port);
  answered.ExpectEof();
  RawPeer two(reactor, port);
  silent.ExpectEof();
  // What is asked stays, and so does who came last.
  asked->Respond({200, {}, {MakeChunk("done\n")}});
  busy.Expect("done\n");
  two.Send(Get("/"));
  ASSERT_TRUE(Run([&] { return server->stats().requests == 3; }));
}

TEST_F(ServerTest, LeavesHalfOfTheDescriptorsToTheProcess) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit few = limit;
  few.rlim_cur = 40;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  ServerConfig config;
  config.address_part = 1;
  Serve(config);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  std::deque<RawPeer> peers;
  for (int i = 0; i < 21; ++i) peers.emplace_back(reactor, port);
  peers.front().ExpectEof();
  EXPECT_EQ(server->stats().connections_open.load(), 20u);
}

TEST_F(ServerTest, ADroppedRequestIsAnswered500) {
  Serve();
  handler.fn = [](std::shared_ptr<Exchange>) {};
  std::string answer = Talk(Get("/", kClose));
  EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 500");
}

TEST_F(ServerTest, TellsTheHandlerWhenThePeerGoesAway) {
  Serve();
  HoldRequests();
  RawPeer peer(reactor, port);
  peer.Send(Get("/"));
  ASSERT_TRUE(Run([&] { return held != nullptr; }));
  peer.Close();
  EXPECT_TRUE(Run([&] { return closed; }));
  held->Respond({200, {}, {}});  // into the void, without harm
  EXPECT_TRUE(Run([&] { return server->stats().connections_open == 0; }));
}

TEST_F(ServerTest, AHalfClosedPeerStillGetsItsAnswer) {
  Serve();
  HoldRequests();
  RawPeer peer(reactor, port);
  peer.Send(Get("/"));
  peer.HalfClose();
  ASSERT_TRUE(Run([&] { return closed; }));
  held->Respond({200, {}, {MakeChunk("still here")}});
  peer.Expect("still here");
  peer.ExpectEof();
}

TEST_F(ServerTest, AnswersFromAnotherThread) {
  Serve();
  Reactor core;
  handler.fn = [&](std::shared_ptr<Exchange> exchange) {
    core.Post([exchange] { exchange->Respond({200, {}, {MakeChunk("from the core\n")}}); });
  };
  std::thread thread([&] { core.Run(); });
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < 8; ++i) {
    peers.push_back(std::make_unique<RawPeer>(reactor, port));
    std::string many;
    for (int j = 0; j < 100; ++j) many += Get("/");
    peers.back()->Send(many);
  }
  for (auto& peer : peers) {
    EXPECT_TRUE(Run([&] { return CountOf(peer->received, "from the core\n") == 100; }));
  }
  core.Stop();
  thread.join();
}

TEST_F(ServerTest, ListensOnUnixSocketsAndReplacesADeadOne) {
  std::string path = StrCat(testing::TempDir(), "/swell_net_test_", getpid(), ".sock");
  Serve();
  ASSERT_TRUE(server->Listen("unix:" + path).ok());
  auto again = server->Listen("unix:" + path);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.status().code(), Code::kConflict);
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
  server = nullptr;
  EXPECT_NE(access(path.c_str(), F_OK), 0) << "the socket goes with the server";
  Serve();
  EXPECT_TRUE(server->Listen("unix:" + path).ok());
}

TEST_F(ServerTest, RefusesAddressesItCannotListenOn) {
  Serve();
  for (const std::string& bad :
       {std::string("nonsense"), std::string("example.org:80"), std::string("127.0.0.1:99999"),
        std::string("unix:"), "unix:/" + std::string(200, 'x'),
        StrCat("127.0.0.1:", static_cast<int>(port))}) {
    auto listening = server->Listen(bad);
    EXPECT_FALSE(listening.ok()) << bad;
    EXPECT_FALSE(listening.status().message().empty()) << bad;
  }
  EXPECT_TRUE(server->Listen(":0").ok()) << "every interface";
}

TEST_F(ServerTest, ShutsDownGently) {
  Serve();
  std::shared_ptr<Exchange> held;
  handler.fn = [&](std::shared_ptr<Exchange> exchange) {
    if (exchange->request().path == "/held") {
      held = std::move(exchange);
    } else {
      exchange->Respond({200, {}, {MakeChunk("quick")}});
    }
  };
  RawPeer idle(reactor, port);
  idle.Send(Get("/"));
  idle.Expect("quick");
  RawPeer busy(reactor, port);
  busy.Send(Get("/held"));
  ASSERT_TRUE(Run([&] { return held != nullptr; }));
  bool done = false;
  server->Shutdown(kPatience, [&] { done = true; });
  idle.ExpectEof();
  EXPECT_FALSE(done);
  held->Respond({200, {}, {MakeChunk("finished")}});
  busy.Expect("Connection: close");
  busy.Expect("finished");
  busy.ExpectEof();
  busy.Close();
  EXPECT_TRUE(Run([&] { return done; }));
}

TEST_F(ServerTest, ShutdownCutsWhatOutlastsTheGrace) {
  Serve();
  std::shared_ptr<Exchange> held;
  handler.fn = [&](std::shared_ptr<Exchange> exchange) { held = std::move(exchange); };
  RawPeer peer(reactor, port);
  peer.Send(Get("/"));
  ASSERT_TRUE(Run([&] { return held != nullptr; }));
  bool done = false;
  server->Shutdown(milliseconds(10), [&] { done = true; });
  EXPECT_TRUE(Run([&] { return done; }));
  EXPECT_TRUE(held->gone());
  peer.ExpectEof();
}

TEST_F(ServerTest, ExchangesMayOutliveTheServer) {
  Serve();
  std::shared_ptr<Exchange> held;
  handler.fn = [&](std::shared_ptr<Exchange> exchange) { held = std::move(exchange); };
  RawPeer peer(reactor, port);
  peer.Send(Get("/"));
  ASSERT_TRUE(Run([&] { return held != nullptr; }));
  server = nullptr;
  EXPECT_TRUE(held->gone());
  EXPECT_FALSE(held->StartStream(200, {}));
  EXPECT_FALSE(held->Write(MakeChunk("x")));
  held->EndStream();
  held = nullptr;
  peer.ExpectEof();
}

TEST_F(ServerTest, WhoAsksLittleIsServedBeforeTheRestOfAFlood) {
  Serve();
  constexpr size_t kFlood = 200;
  std::vector<std::unique_ptr<RawPeer>> flood;
  for (size_t i = 0; i < kFlood; ++i) flood.push_back(std::make_unique<RawPeer>(reactor, port));
  RawPeer other(reactor, port);
  // The client is known from the first request on.
  for (auto& peer : flood) {
    peer->Send(Get("/hello", "Authorization: Bearer flood\r\n"));
    peer->Expect("GET /hello []\n");
  }
  other.Send(Get("/hello", "Authorization: Bearer other\r\n"));
  other.Expect("GET /hello []\n");
  std::vector<std::string> order;
  handler.fn = [&](std::shared_ptr<Exchange> exchange) {
    order.push_back(exchange->request().path);
    exchange->Respond({200, {}, {MakeChunk("done\n")}});
  };
  // All of it is there before the server looks, the other one's last.
  for (auto& peer : flood) peer->Send(Get("/flood", "Authorization: Bearer flood\r\n"));
  other.Send(Get("/other", "Authorization: Bearer other\r\n"));
  const SteadyTime end = clock.Steady() + kPatience;
  auto arrived = [](const auto& peer) { return peer->Arrived(); };
  while (!(std::ranges::all_of(flood, arrived) && other.Arrived()) && clock.Steady() < end) {
    std::this_thread::yield();
  }
  other.Expect("done\n");
  const auto place = std::find(order.begin(), order.end(), "/other") - order.begin();
  EXPECT_LT(place, 20);  // 16 are served before anybody's turn matters
  for (auto& peer : flood) peer->Expect("done\n");
  EXPECT_EQ(order.size(), kFlood + 1);
}

TEST_F(ServerTest, NobodysAddressHasAllConnections) {
  ServerConfig config;
  config.max_connections = 4;
  Serve(config);
  std::vector<std::shared_ptr<Exchange>> asked;
  handler.fn = [&](std::shared_ptr<Exchange> exchange) { asked.push_back(std::move(exchange)); };
  RawPeer one(reactor, port), two(reactor, port);
  for (RawPeer* peer : {&one, &two}) peer->Send(Get("/"));
  ASSERT_TRUE(Run([&] { return asked.size() == 2; }));
  RawPeer three(reactor, port);
  three.Expect("HTTP/1.1 503 Service Unavailable\r\n");
  asked[1]->Respond({200, {}, {MakeChunk("done\n")}});
  two.Expect("done\n");
  RawPeer four(reactor, port);
  four.Send(Get("/"));
  ASSERT_TRUE(Run([&] { return asked.size() == 3; }));
}

TEST_F(ServerTest, KeepsItsMemoryOfAPeerUntilTheEndOfTheRequest) {
  Serve();
  PeerIdentity seen;
  handler.fn = [&](std::shared_ptr<Exchange> exchange) {
    seen = exchange->request().peer;
    exchange->Respond({200, {}, {}});
  };
  Talk(Get("/", kClose));
  EXPECT_FALSE(seen.tls);
  EXPECT_EQ(seen.remote.substr(0, 10), "127.0.0.1:");
}

}  // namespace
}  // namespace swell::net
