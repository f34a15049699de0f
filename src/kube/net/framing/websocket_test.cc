#include "kube/net/framing/websocket.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/strings.h"

namespace swell::net {
namespace {

using Opcode = WebSocketCodec::Opcode;
using Role = WebSocketCodec::Role;
constexpr size_t kMax = 1 << 20;

std::string Bytes(std::initializer_list<int> bytes) {
  std::string out;
  for (int byte : bytes) out += static_cast<char>(byte);
  return out;
}

std::vector<WebSocketCodec::Message> FeedAll(WebSocketCodec& codec, std::string_view bytes) {
  std::vector<WebSocketCodec::Message> messages;
  Status fed = codec.Feed(bytes, &messages);
  EXPECT_TRUE(fed.ok()) << fed.ToString();
  return messages;
}

Status Refusal(Role role, std::string_view bytes, size_t max = kMax) {
  WebSocketCodec codec(role, max);
  std::vector<WebSocketCodec::Message> messages;
  return codec.Feed(bytes, &messages);
}

TEST(WebSocket, AcceptsTheSpecificationsKey) {
  EXPECT_EQ(WebSocketAccept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(WebSocket, ReadsTheSpecificationsExamples) {
  WebSocketCodec client(Role::kClient, kMax);
  WebSocketCodec server(Role::kServer, kMax);
  const std::vector<WebSocketCodec::Message> hello{{Opcode::kText, "Hello"}};
  EXPECT_EQ(FeedAll(client, Bytes({0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f})), hello);
  EXPECT_EQ(
      FeedAll(server, Bytes({0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58})),
      hello);
  EXPECT_EQ(FeedAll(client, Bytes({0x01, 0x03, 0x48, 0x65, 0x6c, 0x80, 0x02, 0x6c, 0x6f})), hello);
}

TEST(WebSocket, WritesTheSmallestLength) {
  WebSocketCodec server(Role::kServer, kMax);
  EXPECT_EQ(server.Encode(Opcode::kText, "Hello"), Bytes({0x81, 0x05}) + "Hello");
  EXPECT_EQ(server.Encode(Opcode::kBinary, std::string(126, 'x')).substr(0, 4),
            Bytes({0x82, 126, 0, 126}));
  EXPECT_EQ(server.Encode(Opcode::kBinary, std::string(65536, 'x')).substr(0, 10),
            Bytes({0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0}));
}

TEST(WebSocket, EveryLengthSurvivesTheWayInAnyPieces) {
  Random random(17);
  for (Role from : {Role::kServer, Role::kClient}) {
    WebSocketCodec writer(from, kMax);
    WebSocketCodec reader(from == Role::kServer ? Role::kClient : Role::kServer, kMax);
    std::string wire;
    std::vector<WebSocketCodec::Message> sent;
    for (size_t size : {0, 1, 125, 126, 127, 65535, 65536, 100'000}) {
      std::string payload;
      for (size_t i = 0; i < size; ++i) payload += static_cast<char>(random.Next());
      sent.push_back({Opcode::kBinary, payload});
      wire += writer.Encode(Opcode::kBinary, payload);
      sent.push_back({Opcode::kPing, "p"});
      wire += writer.Encode(Opcode::kPing, "p");
    }
    std::vector<WebSocketCodec::Message> got;
    for (size_t at = 0; at < wire.size();) {
      size_t size = 1 + random.Next() % 5000;
      ASSERT_TRUE(reader.Feed(std::string_view(wire).substr(at, size), &got).ok());
      at += size;
    }
    EXPECT_TRUE(got == sent);
  }
}

TEST(WebSocket, ControlFramesMayComeInsideAMessage) {
  WebSocketCodec client(Role::kClient, kMax);
  auto got = FeedAll(client, Bytes({0x02, 1, 'a', 0x89, 1, '!', 0x80, 1, 'b'}));
  EXPECT_EQ(got,
            (std::vector<WebSocketCodec::Message>{{Opcode::kPing, "!"}, {Opcode::kBinary, "ab"}}));
}

TEST(WebSocket, RefusesWhatTheProtocolForbids) {
  const struct {
    const char* what;
    Role role;
    std::string bytes;
    std::string words;
  } kCases[] = {
      {"reserved", Role::kClient, Bytes({0xc1, 0}), "WebSocket: reserved bits are set"},
      {"opcode", Role::kClient, Bytes({0x83, 0}), "WebSocket: unknown opcode 3"},
      {"mask", Role::kClient, Bytes({0x81, 0x80, 0, 0, 0, 0}),
       "WebSocket: a server's frame is masked"},
      {"no mask", Role::kServer, Bytes({0x81, 0}), "WebSocket: a client's frame is not masked"},
      {"long ping", Role::kClient, Bytes({0x89, 126, 0, 126}),
       "WebSocket: a control frame is fragmented or longer than 125 bytes"},
      {"stray", Role::kClient, Bytes({0x80, 0}), "WebSocket: nothing to continue"},
      {"nested", Role::kClient, Bytes({0x02, 0, 0x02, 0}),
       "WebSocket: a message begins inside another"},
      {"close", Role::kClient, Bytes({0x88, 1, 3}), "WebSocket: half a close code"},
      {"text", Role::kClient, Bytes({0x81, 1, 0xff}), "WebSocket: a text message is not UTF-8"},
  };
  for (const auto& c : kCases) {
    Status refused = Refusal(c.role, c.bytes);
    EXPECT_EQ(refused.code(), Code::kBadRequest) << c.what;
    EXPECT_EQ(refused.message(), c.words) << c.what;
  }
}

TEST(WebSocket, BoundsAMessageBeforeItArrives) {
  EXPECT_EQ(
      Refusal(Role::kClient, Bytes({0x82, 127, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}))
          .code(),
      Code::kTooLarge);
  EXPECT_EQ(Refusal(Role::kClient, Bytes({0x02, 3, 'a', 'b', 'c', 0x80, 3, 'd'}), 5).code(),
            Code::kTooLarge);
}

// Damaged bytes end as a Status or as messages within the bound, and never as anything else.
TEST(WebSocket, SurvivesDamage) {
  Random random(4711);
  WebSocketCodec writer(Role::kClient, kMax);
  std::string good;
  for (int i = 0; i < 6; ++i) good += writer.Encode(Opcode::kBinary, std::string(i * 50, 'd'));
  good += writer.Encode(Opcode::kClose, WebSocketCodec::ClosePayload(1000, "bye"));
  for (int round = 0; round < 20'000; ++round) {
    std::string bad = good;
    for (uint64_t n = 1 + random.Next() % 4; n > 0; --n) {
      bad[random.Next() % bad.size()] = static_cast<char>(random.Next());
    }
    bad.resize(1 + random.Next() % bad.size());
    WebSocketCodec reader(Role::kServer, 1000);
    std::vector<WebSocketCodec::Message> messages;
    Status fed = reader.Feed(bad, &messages);
    for (const auto& message : messages) ASSERT_LE(message.payload.size(), 1000u);
    if (fed.ok()) continue;
    EXPECT_EQ(reader.Feed(good, &messages).code(), fed.code());
  }
}

}  // namespace
}  // namespace swell::net
