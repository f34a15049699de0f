// Fuzzes SPDY, as the server's and as the client's half reads it. However the input is cut into
// pieces, the same must be heard; header blocks are also read by themselves, since few mutations
// survive their compression, and what is read of one must be the same once it was written again.
#include "kube/net/framing/spdy.h"

#include <cstdint>

#include "base/check.h"
#include "base/random.h"
#include "base/strings.h"
#include "kube/net/framing/spdy_headers.h"

namespace {

using swell::net::Chunk;
using swell::net::Headers;
using swell::net::SpdyHeaderCodec;
using swell::net::SpdySession;

std::string Text(const Headers& headers) {
  std::string out;
  for (const auto& header : headers) out += swell::StrCat(header.name, "=", header.value, ";");
  return out;
}

// Writes down what it hears; answers streams, echoes data, resets what ends in a zero byte.
struct Listener final : SpdySession::Events {
  void OnStream(uint32_t id, const Headers& headers) override {
    log += swell::StrCat("stream ", id, " ", Text(headers), "\n");
    session->Reply(id, headers);
  }
  void OnReply(uint32_t id, const Headers& headers) override {
    log += swell::StrCat("reply ", id, " ", Text(headers), "\n");
  }
  void OnData(uint32_t id, std::string_view bytes) override {
    SWELL_CHECK(!bytes.empty());
    data += bytes;
    session->Data(id, swell::net::MakeChunk(std::string(bytes)));
  }
  void OnFin(uint32_t id) override {
    log += swell::StrCat("fin ", id, "\n");
    if (data.ends_with('\0')) session->Reset(id, SpdySession::ResetCode::kCancel);
    session->Fin(id);
  }
  void OnReset(uint32_t id, uint32_t code) override {
    log += swell::StrCat("reset ", id, " ", code, "\n");
  }
  void OnGoAway() override { log += "goaway\n"; }

  SpdySession* session = nullptr;
  std::string log, data;
};

std::string Hear(SpdySession::Role role, std::string_view bytes, uint64_t seed) {
  swell::Random random(seed);
  Listener listener;
  SpdySession session(role, listener, [](const Chunk& chunk) { SWELL_CHECK(chunk != nullptr); });
  listener.session = &session;
  if (role == SpdySession::Role::kClient) session.Open({{"streamType", "error"}});
  swell::Status status;
  while (!bytes.empty() && status.ok()) {
    const std::string_view piece = bytes.substr(0, seed == 0 ? bytes.size() : 1 + random.Below(16));
    bytes.remove_prefix(piece.size());
    status = session.Feed(piece);
    SWELL_CHECK(session.open_streams() <= SpdySession::kStreamsMax);
  }
  return swell::StrCat(listener.log, listener.data, "\n", status.ToString());
}

// A block that zlib stores without compression; the stream continues behind it.
std::string Stored(std::string_view plain) {
  const auto size = static_cast<uint16_t>(plain.size());
  const auto rest = static_cast<uint16_t>(~size);
  std::string out("\x78\x01\x00", 3);
  for (const uint16_t number : {size, rest}) {
    out += static_cast<char>(number & 0xff);
    out += static_cast<char>(number >> 8);
  }
  out += plain;
  return out;
}

// Once written, a block has its names in lower case and in order.
Headers Again(const Headers& headers) {
  SpdyHeaderCodec writer, reader;
  auto read = reader.Decode(writer.Encode(headers));
  SWELL_CHECK(read.ok());
  return std::move(*read);
}

void ReadBlock(std::string_view plain) {
  SpdyHeaderCodec codec;
  const auto headers = codec.Decode(Stored(plain.substr(0, 0xffff)));
  if (!headers.ok()) return;
  const Headers written = Again(*headers);
  SWELL_CHECK(written.size() == headers->size() && Text(Again(written)) == Text(written));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const auto role : {SpdySession::Role::kServer, SpdySession::Role::kClient}) {
    const std::string whole = Hear(role, bytes, 0);
    for (uint64_t seed = 1; seed < 4; ++seed) SWELL_CHECK(Hear(role, bytes, seed) == whole);
  }
  ReadBlock(bytes);
  return 0;
}
