// Streaming answers and upgraded connections.
#include <thread>

#include "base/strings.h"
#include "kube/net/http/server.h"
#include "kube/net/net_testing.h"

namespace swell::net {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kGet = "GET /watch HTTP/1.1\r\nHost: a\r\n\r\n";

class ServerStreamTest : public ServerTest {
 protected:
  // Keeps the exchanges instead of answering.
  void HoldAll() {
    handler.fn = [this](std::shared_ptr<Exchange> exchange) {
      held.push_back(std::move(exchange));
    };
  }
  std::shared_ptr<Exchange> NextExchange(size_t index = 0) {
    EXPECT_TRUE(Run([&] { return held.size() > index; }));
    return held[index];
  }
  std::vector<std::shared_ptr<Exchange>> held;
};

TEST_F(ServerStreamTest, SendsChunksAsTheyCome) {
  Serve();
  HoldAll();
  RawPeer peer(reactor, port);
  peer.Send(kGet);
  auto exchange = NextExchange();
  EXPECT_TRUE(exchange->StartStream(200, {{"Content-Type", "application/json"}}));
  EXPECT_TRUE(exchange->Write(MakeChunk("{\"a\":1}\n")));
  peer.Expect("Transfer-Encoding: chunked\r\n\r\n8\r\n{\"a\":1}\n\r\n");
  std::string large(5000, 'x');
  EXPECT_TRUE(exchange->Write(MakeChunk("")));
  EXPECT_TRUE(exchange->Write(MakeChunk(large)));
  peer.Expect(StrCat("1388\r\n", large, "\r\n"));
  exchange->EndStream();
  peer.Expect("\r\n0\r\n\r\n");
  EXPECT_FALSE(peer.eof);
  EXPECT_FALSE(exchange->Write(MakeChunk("late")));
  held.clear();
  exchange = nullptr;
  peer.received.clear();
  peer.Send(kGet);  // the connection is as good as new
  NextExchange()->Respond({200, {}, {MakeChunk("next")}});
  peer.Expect("next");
}

TEST_F(ServerStreamTest, AnHttp10PeerGetsPlainBytesUntilTheEnd) {
  Serve();
  HoldAll();
  RawPeer peer(reactor, port);
  peer.Send("GET / HTTP/1.0\r\n\r\n");
  auto exchange = NextExchange();
  exchange->StartStream(200, {});
  exchange->Write(MakeChunk("abc"));
  exchange->Write(MakeChunk("def"));
  exchange->EndStream();
  peer.ExpectEof();
  EXPECT_NE(peer.received.find("\r\n\r\nabcdef"), std::string::npos) << peer.received;
}

TEST_F(ServerStreamTest, AStreamToHeadHasNoBody) {
  Serve();
  HoldAll();
  RawPeer peer(reactor, port);
  peer.Send("HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  auto exchange = NextExchange();
  exchange->StartStream(200, {});
  exchange->Write(MakeChunk("abc"));
  exchange->EndStream();
  peer.ExpectEof();
  EXPECT_EQ(peer.received.find("abc"), std::string::npos);
  EXPECT_EQ(peer.received.substr(peer.received.size() - 4), "\r\n\r\n");
}

TEST_F(ServerStreamTest, TellsWhenThePeerGoesAwayMidStream) {
  Serve();
  HoldAll();
  RawPeer peer(reactor, port);
  peer.Send(kGet);
  auto exchange = NextExchange();
  bool closed = false;
  exchange->OnClose([&] { closed = true; }, reactor);
  exchange->StartStream(200, {});
  exchange->Write(MakeChunk("first\n"));
  peer.Expect("first\n");
  EXPECT_FALSE(closed);
  peer.Close();
  EXPECT_TRUE(Run([&] { return closed; }));
  EXPECT_TRUE(exchange->gone());
  EXPECT_FALSE(exchange->Write(MakeChunk("second\n")));
  bool late = false;
  exchange->OnClose([&] { late = true; }, reactor);
  EXPECT_TRUE(Run([&] { return late; })) << "asked after the fact, it says so at once";
}

TEST_F(ServerStreamTest, OnCloseIsNotCalledAfterTheEnd) {
  Serve();
  HoldAll();
  RawPeer peer(reactor, port);
  peer.Send(kGet);
  auto exchange = NextExchange();
  bool closed = false;
  exchange->OnClose([&] { closed = true; }, reactor);
  exchange->StartStream(200, {});
  exchange->EndStream();
  peer.Expect("0\r\n\r\n");
  peer.Close();
  EXPECT_TRUE(Run([&] { return server->stats().connections_open == 0; }));
  reactor.RunFor(milliseconds(2));
  EXPECT_FALSE(closed);
}

TEST_F(ServerStreamTest, APeerThatReadsNothingOverflowsAndIsCutOff) {
  Serve({.stream_buffer_bytes = 100'000});
  HoldAll();
  RawPeer peer(reactor, port, 4096);
  peer.StopReading();
  peer.Send(kGet);
  auto exchange = NextExchange();
  bool closed = false;
  exchange->OnClose([&] { closed = true; }, reactor);
  exchange->StartStream(200, {});
  Chunk chunk = MakeChunk(std::string(10'000, 'x'));
  bool accepted = true;
  for (int i = 0; i < 10'000 && accepted; ++i) {
    accepted = exchange->Write(chunk);
    EXPECT_LE(exchange->queued_bytes(), 100'000u);
    reactor.RunFor(Duration::zero());
    reactor.Post([] {});
    reactor.RunUntil([] { return false; }, std::chrono::microseconds(100));
  }
  EXPECT_FALSE(accepted);
  EXPECT_TRUE(Run([&] { return closed; }));
  EXPECT_EQ(server->stats().overflows, 1u);
  peer.SetReading(true);
  peer.ExpectEof();
  EXPECT_EQ(peer.received.find("\r\n0\r\n\r\n"), std::string::npos)
      << "it must look cut, not ended";
}

TEST_F(ServerStreamTest, OneChunkLargerThanTheBufferIsAccepted) {
  Serve({.stream_buffer_bytes = 1000});
  HoldAll();
  RawPeer peer(reactor, port);
  peer.Send(kGet);
  auto exchange = NextExchange();
  exchange->StartStream(200, {});
  EXPECT_TRUE(exchange->Write(MakeChunk(std::string(50'000, 'y'))));
  exchange->EndStream();
  peer.Expect("0\r\n\r\n");
}

TEST_F(ServerStreamTest, TellsWhenThePeerHasCaughtUp) {
  Serve({.stream_buffer_bytes = 8 << 20});
  HoldAll();
  RawPeer peer(reactor, port, 4096);
  peer.StopReading();
  peer.Send(kGet);
  auto exchange = NextExchange();
  exchange->StartStream(200, {});
  EXPECT_TRUE(exchange->Write(MakeChunk(std::string(32 << 20, 'z'))));
  int drained = 0;
  exchange->OnDrained([&] { ++drained; }, reactor);
  reactor.RunFor(milliseconds(5));
  EXPECT_EQ(drained, 0);
  peer.SetReading(true);
  EXPECT_TRUE(Run([&] { return drained == 1; }));
  EXPECT_LT(exchange->queued_bytes(), 4u << 20);
  exchange->OnDrained([&] { ++drained; }, reactor);
  EXPECT_TRUE(Run([&] { return drained == 2; })) << "at once when there is room";
}

TEST_F(ServerStreamTest, ADroppedStreamIsCutNotEnded) {
  Serve();
  HoldAll();
  RawPeer peer(reactor, port);
  peer.Send(kGet);
  NextExchange()->StartStream(200, {});
  held[0]->Write(MakeChunk("partial"));
  held.clear();
  peer.ExpectEof();
  EXPECT_EQ(peer.received.find("0\r\n\r\n"), std::string::npos);
}

TEST_F(ServerStreamTest, AbortCutsTheConnection) {
  Serve();
  HoldAll();
  RawPeer peer(reactor, port);
  peer.Send(kGet);
  auto exchange = NextExchange();
  exchange->StartStream(200, {});
  exchange->Write(MakeChunk("partial"));
  peer.Expect("partial");
  exchange->Abort();
  peer.ExpectEof();
}

TEST_F(ServerStreamTest, OneEventReachesManyPeersFromAnotherThread) {
  Serve();
  HoldAll();
  constexpr size_t kPeers = 100;
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (size_t i = 0; i < kPeers; ++i) {
    peers.push_back(std::make_unique<RawPeer>(reactor, port));
    peers.back()->Send(kGet);
  }
  NextExchange(kPeers - 1);
  std::thread core([&] {
    for (auto& exchange : held) exchange->StartStream(200, {});
    for (int event = 0; event < 20; ++event) {
      Chunk chunk = MakeChunk(StrCat("event ", event, "\n"));
      for (auto& exchange : held) EXPECT_TRUE(exchange->Write(chunk));
    }
    for (auto& exchange : held) exchange->EndStream();
  });
  for (auto& peer : peers) {
    peer->Expect("\r\n0\r\n\r\n");
    EXPECT_EQ(CountOf(peer->received, "event "), 20u);
    EXPECT_LT(peer->received.find("event 7\n"), peer->received.find("event 8\n"));
  }
  core.join();
}

class UpgradeTest : public ServerStreamTest {
 protected:
  static constexpr std::string_view kUpgrade =
      "GET /exec HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";

  std::shared_ptr<ByteStream> Accept() {
    auto exchange = NextExchange();
    EXPECT_TRUE(HeaderHasToken(exchange->request().headers, "Connection", "upgrade"));
    auto stream = exchange->Upgrade({{"Upgrade", "echo"}});
    held.clear();
    return stream;
  }
};

TEST_F(UpgradeTest, EchoesBothWays) {
  Serve({.header_timeout = milliseconds(5), .idle_timeout = milliseconds(5)});
  HoldAll();
  RawPeer peer(reactor, port);
  peer.Send(StrCat(kUpgrade, "early "));  // behind the upgrade in the same packet
  auto stream = Accept();
  peer.Expect("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\n");
  Status why(Code::kInternal, "not closed");
  stream->Start(
      reactor, [&](std::string bytes) { EXPECT_TRUE(stream->Write(MakeChunk("<" + bytes + ">"))); },
      [&](Status status) { why = std::move(status); });
  peer.Expect("<early >");
  reactor.RunFor(milliseconds(20));  // HTTP's timeouts are over
  peer.Send("late");
  peer.Expect("<late>");
  peer.Close();
  EXPECT_TRUE(Run([&] { return why.ok(); }));
  EXPECT_FALSE(stream->Write(MakeChunk("x")));
  EXPECT_TRUE(Run([&] { return server->stats().connections_open == 0; }));
}

TEST_F(UpgradeTest, WorksFromAnotherThread) {
  Serve();
  HoldAll();
  RawPeer peer(reactor, port);
  peer.Send(kUpgrade);
  auto exchange = NextExchange();
  Reactor core;
  std::shared_ptr<ByteStream> stream;
  core.Post([&] {
    stream = exchange->Upgrade({});
    exchange = nullptr;
    stream->Start(
        core, [&](std::string bytes) { stream->Write(MakeChunk(std::move(bytes))); },
        [&](Status) {
          stream = nullptr;
          core.Stop();
        });
  });
  held.clear();
  std::thread thread([&] { core.Run(); });
  std::string big(3 << 20, 'q');
  peer.Send(big);
  EXPECT_TRUE(Run([&] { return peer.received.ends_with(big); }));
  peer.Close();
  EXPECT_TRUE(Run([&] { return server->stats().connections_open == 0; }));
  thread.join();
}

TEST_F(UpgradeTest, CloseSendsEverythingFirst) {
  Serve();
  HoldAll();
  RawPeer peer(reactor, port);
  peer.Send(kUpgrade);
  auto stream = Accept();
  std::string big(2 << 20, 'w');
  EXPECT_TRUE(stream->Write(MakeChunk(big)));
  stream->Close();
  EXPECT_FALSE(stream->Write(MakeChunk("after")));
  peer.Send("unread by anyone");
  peer.ExpectEof();
  EXPECT_EQ(CountOf(peer.received, "w"), big.size() + CountOf("Switching", "w"));
}

TEST_F(UpgradeTest, AStreamHeldByItsOwnCallbacksEndsWithTheConnection) {
  Serve();
  HoldAll();
  for (bool by_user : {false, true}) {
    RawPeer peer(reactor, port);
    peer.Send(kUpgrade);
    auto stream = Accept();
    std::weak_ptr<ByteStream> weak = stream;
    stream->Start(
        reactor, [stream](std::string) {}, [stream](Status) {});
    peer.Expect("101");
    if (by_user) {
      stream->Close();
    } else {
      peer.Close();
    }
    stream = nullptr;
    EXPECT_TRUE(Run([&] { return weak.expired(); }));
    EXPECT_TRUE(Run([&] { return by_user || server->stats().connections_open == 0; }));
  }
}

TEST_F(ServerStreamTest, AnExchangeHeldByItsOwnCallbacksEndsWithTheAnswerOrThePeer) {
  Serve({.stream_buffer_bytes = 100});
  HoldAll();
  for (bool answer : {false, true}) {
    RawPeer peer(reactor, port, 4096);
    peer.Send(kGet);
    std::weak_ptr<Exchange> weak = NextExchange();
    auto exchange = weak.lock();
    held.clear();
    exchange->OnClose([exchange] {}, reactor);
    exchange->StartStream(200, {});
    exchange->Write(MakeChunk(std::string(16 << 20, 'x')));
    exchange->OnDrained([exchange] {}, reactor);
    if (answer) exchange->EndStream();
    exchange = nullptr;
    if (!answer) peer.Close();
    EXPECT_TRUE(Run([&] { return weak.expired(); }));
  }
}

TEST_F(UpgradeTest, DroppingTheStreamClosesIt) {
  Serve();
  HoldAll();
  RawPeer peer(reactor, port);
  peer.Send(kUpgrade);
  Accept();
  peer.Expect("101");
  peer.ExpectEof();
}

TEST_F(UpgradeTest, ASlowReaderHoldsThePeerBack) {
  Serve();
  HoldAll();
  RawPeer peer(reactor, port);
  peer.Send(kUpgrade);
  auto stream = Accept();
  peer.Send(std::string(64 << 20, 'x'));
  reactor.RunFor(milliseconds(10));
  EXPECT_GT(peer.unsent(), 32u << 20) << "nobody listens yet, so the kernel's buffers fill";
  size_t got = 0;
  stream->Start(
      reactor, [&](std::string bytes) { got += bytes.size(); }, [](Status) {});
  EXPECT_TRUE(Run([&] { return got == 64u << 20; }));
}

TEST_F(UpgradeTest, OverflowClosesTheStream) {
  Serve({.stream_buffer_bytes = 100'000});
  HoldAll();
  RawPeer peer(reactor, port, 4096);
  peer.Send(kUpgrade);
  auto stream = Accept();
  peer.Expect("101");
  peer.StopReading();
  Status why;
  stream->Start(
      reactor, [](std::string) {}, [&](Status status) { why = std::move(status); });
  EXPECT_TRUE(stream->Write(MakeChunk(std::string(16 << 20, 'x')))) << "the buffer was empty";
  EXPECT_FALSE(stream->Write(MakeChunk("one more")));
  EXPECT_TRUE(Run([&] { return !why.ok(); }));
  EXPECT_NE(why.message().find("too slowly"), std::string::npos);
}

TEST_F(UpgradeTest, TheServersEndEndsTheStream) {
  Serve();
  HoldAll();
  RawPeer peer(reactor, port);
  peer.Send(kUpgrade);
  auto stream = Accept();
  peer.Expect("101");
  Status why;
  stream->Start(
      reactor, [](std::string) {}, [&](Status status) { why = std::move(status); });
  server = nullptr;
  EXPECT_TRUE(Run([&] { return !why.ok(); }));
  EXPECT_FALSE(stream->Write(MakeChunk("x")));
  peer.ExpectEof();
}

TEST_F(UpgradeTest, AnUpgradeAfterThePeerLeftIsJustClosed) {
  Serve();
  HoldAll();
  RawPeer peer(reactor, port);
  peer.Send(kUpgrade);
  auto exchange = NextExchange();
  server = nullptr;
  auto stream = exchange->Upgrade({});
  bool closed = false;
  stream->Start(
      reactor, [](std::string) {}, [&](Status) { closed = true; });
  EXPECT_TRUE(Run([&] { return closed; }));
}

}  // namespace
}  // namespace swell::net
