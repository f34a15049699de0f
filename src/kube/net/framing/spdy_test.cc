#include "kube/net/framing/spdy.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/strings.h"
#include "kube/net/framing/spdy_headers.h"

namespace swell::net {
namespace {

// Writes down what happens; answers streams.
struct Recorder final : SpdySession::Events {
  void OnStream(uint32_t id, const Headers& headers) override {
    log += StrCat("stream ", id);
    for (const Header& header : headers) log += StrCat(" ", header.name, "=", header.value);
    log += "\n";
    if (session != nullptr) session->Reply(id);
  }
  void OnReply(uint32_t id, const Headers&) override { log += StrCat("reply ", id, "\n"); }
  void OnData(uint32_t id, std::string_view bytes) override {
    if (data.empty()) log += StrCat("data ", id, "\n");
    data += bytes;
  }
  void OnFin(uint32_t id) override { log += StrCat("fin ", id, "\n"); }
  void OnReset(uint32_t id, uint32_t code) override {
    log += StrCat("reset ", id, " ", code, "\n");
  }
  void OnGoAway() override { log += "goaway\n"; }
  SpdySession* session = nullptr;
  std::string log, data;
};

// Two sessions joined by strings.
class SpdyTest : public ::testing::Test {
 protected:
  SpdyTest() { server_events_.session = &server_; }
  void Carry() {
    while (!to_server_.empty() || !to_client_.empty()) {
      Status fed = server_.Feed(std::exchange(to_server_, {}));
      EXPECT_TRUE(fed.ok()) << fed.ToString();
      fed = client_.Feed(std::exchange(to_client_, {}));
      EXPECT_TRUE(fed.ok()) << fed.ToString();
    }
  }
  std::string to_server_, to_client_;
  Recorder client_events_, server_events_;
  SpdySession client_{SpdySession::Role::kClient, client_events_,
                      [this](const Chunk& bytes) { to_server_ += *bytes; }};
  SpdySession server_{SpdySession::Role::kServer, server_events_,
                      [this](const Chunk& bytes) { to_client_ += *bytes; }};
};

TEST_F(SpdyTest, AStreamLivesFromSynToBothFins) {
  uint32_t id = client_.Open({{"StreamType", "stdin"}});
  EXPECT_EQ(id, 1u);
  client_.Data(id, MakeChunk("hello"));
  client_.Fin(id);
  Carry();
  EXPECT_EQ(server_events_.log, "stream 1 streamtype=stdin\ndata 1\nfin 1\n");
  EXPECT_EQ(server_events_.data, "hello");
  EXPECT_EQ(client_events_.log, "reply 1\n");
  EXPECT_FALSE(client_.CanSend(id));
  server_.Data(id, MakeChunk("answer"));
  server_.Fin(id);
  Carry();
  EXPECT_EQ(client_events_.data, "answer");
  EXPECT_EQ(client_.open_streams() + server_.open_streams(), 0u);
}

TEST_F(SpdyTest, ResetsEndAStreamAtOnce) {
  uint32_t id = client_.Open({});
  Carry();
  server_.Reset(id, SpdySession::ResetCode::kInternalError);
  client_.Data(id, MakeChunk("crosses the reset"));
  Carry();
  EXPECT_EQ(client_events_.log, "reply 1\nreset 1 6\n");
  EXPECT_EQ(server_events_.data, "");
  EXPECT_EQ(client_.open_streams() + server_.open_streams(), 0u);
}

TEST_F(SpdyTest, PingsAreEchoedAndGoAwayIsHeard) {
  client_.Ping(7);
  server_.Ping(8);
  client_.GoAway();
  EXPECT_EQ(server_.Feed(std::exchange(to_server_, {})).code(), Code::kOk);
  EXPECT_EQ(server_events_.log, "goaway\n");
  // The server's own ping and the echo of the client's.
  EXPECT_EQ(to_client_.size(), 24u);
  Carry();
}

TEST_F(SpdyTest, SettingsWindowsAndUnknownFramesAreIgnored) {
  const std::string settings("\x80\x03\x00\x04\x00\x00\x00\x04\x00\x00\x00\x00", 12);
  const std::string window("\x80\x03\x00\x09\x00\x00\x00\x08\x00\x00\x00\x01\x00\x01\x00\x00", 16);
  const std::string unknown("\x80\x03\x00\x63\x00\x00\x00\x02hi", 10);
  EXPECT_TRUE(server_.Feed(settings + window + unknown).ok());
  client_.Open({});
  Carry();
  EXPECT_EQ(server_events_.log, "stream 1\n");
}

TEST_F(SpdyTest, HeadersKeepTheirValuesAcrossManyBlocks) {
  SpdyHeaderCodec writer, reader;
  Random random(3);
  for (int i = 0; i < 300; ++i) {
    Headers headers{{"port", std::to_string(random.Next() % 65536)},
                    {"requestid", std::to_string(i)},
                    {"streamtype", i % 2 == 0 ? "data" : "error"}};
    auto read = reader.Decode(writer.Encode(headers));
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_EQ(*read, headers);
  }
  auto several = reader.Decode(writer.Encode({{"A", "1"}, {"a", "2"}, {"b", ""}}));
  ASSERT_TRUE(several.ok());
  EXPECT_EQ(*several, (Headers{{"a", "1"}, {"a", "2"}, {"b", ""}}));
}

// {"streamtype": "error"}, compressed elsewhere with the specification's dictionary.
TEST_F(SpdyTest, ReadsABlockMadeElsewhere) {
  const std::string block(
      "\x78\xf9\xe3\xc6\xa7\xc2\x02\xa6\x23\x46\x70\x3a\x2b\x29\x4a\x4d\xcc\x85\x16\x25\xac\xa9"
      "\xa0\x80\x06\x00\x00\x00\xff\xff",
      30);
  SpdyHeaderCodec reader;
  auto read = reader.Decode(block);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(*read, (Headers{{"streamtype", "error"}}));
}

TEST_F(SpdyTest, BytesInAnyPiecesMeanTheSame) {
  Random random(99);
  std::string sent;
  uint32_t id = client_.Open({{"streamtype", "stdout"}});
  for (int i = 0; i < 50; ++i) {
    std::string piece(random.Next() % 3000, static_cast<char>('a' + i % 26));
    sent += piece;
    client_.Data(id, MakeChunk(piece));
    client_.Ping(1);
  }
  client_.Fin(id);
  for (size_t at = 0; at < to_server_.size();) {
    size_t size = 1 + random.Next() % 700;
    ASSERT_TRUE(server_.Feed(std::string_view(to_server_).substr(at, size)).ok());
    at += size;
  }
  EXPECT_TRUE(server_events_.data == sent);
  EXPECT_EQ(server_events_.log, "stream 1 streamtype=stdout\ndata 1\nfin 1\n");
}

TEST_F(SpdyTest, StreamsAreBounded) {
  for (size_t i = 0; i < SpdySession::kStreamsMax; ++i) ASSERT_NE(client_.Open({}), 0u);
  EXPECT_EQ(client_.Open({}), 0u);
  Carry();
  EXPECT_EQ(server_.open_streams(), SpdySession::kStreamsMax);
}

TEST_F(SpdyTest, RefusesWhatTheProtocolForbids) {
  const struct {
    std::string bytes;
    std::string words;
  } kCases[] = {
      {std::string("\x00\x00\x00\x00\x00\x00\x00\x00", 8), "SPDY: data on stream 0"},
      {std::string("\x80\x02\x00\x01\x00\x00\x00\x00", 8), "SPDY: version 2"},
      {std::string("\x80\x03\x00\x01\x00\xff\xff\xff", 8),
       "SPDY: a control frame of 16777215 bytes"},
      {std::string("\x80\x03\x00\x01\x00\x00\x00\x02xx", 10), "SPDY: SYN_STREAM is cut off"},
      {std::string("\x80\x03\x00\x06\x00\x00\x00\x02xx", 10), "SPDY: PING is not 4 bytes long"},
      {std::string("\x80\x03\x00\x08\x00\x00\x00\x08\x00\x00\x00\x01junk", 16),
       "SPDY: header block: cannot be inflated"},
  };
  for (const auto& c : kCases) {
    Recorder events;
    SpdySession session(SpdySession::Role::kServer, events, [](const Chunk&) {});
    Status refused = session.Feed(c.bytes);
    EXPECT_EQ(refused.code(), Code::kBadRequest);
    EXPECT_EQ(refused.message(), c.words);
    EXPECT_EQ(session.Feed("more").message(), c.words);
  }
}

TEST_F(SpdyTest, SurvivesDamage) {
  Random random(4711);
  for (int i = 0; i < 5; ++i) {
    uint32_t id = client_.Open({{"streamtype", "data"}, {"port", "80"}});
    client_.Data(id, MakeChunk(std::string(100, 'x')));
    if (i % 2 == 0) client_.Fin(id);
    client_.Ping(1);
  }
  client_.GoAway();
  const std::string good = std::exchange(to_server_, {});
  for (int round = 0; round < 5'000; ++round) {
    std::string bad = good;
    for (uint64_t n = 1 + random.Next() % 4; n > 0; --n) {
      bad[random.Next() % bad.size()] = static_cast<char>(random.Next());
    }
    bad.resize(1 + random.Next() % bad.size());
    Recorder events;
    SpdySession session(SpdySession::Role::kServer, events, [](const Chunk&) {});
    events.session = &session;
    Status fed = session.Feed(bad);
    EXPECT_LE(session.open_streams(), SpdySession::kStreamsMax);
    if (fed.ok()) continue;
    EXPECT_EQ(session.Feed(good).code(), fed.code());
  }
}

}  // namespace
}  // namespace swell::net
