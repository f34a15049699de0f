// Fuzzes WebSocket's framing, as either side reads it. However the input is cut into pieces, the
// messages and the refusal must be the same; and what was read must survive being sent.
#include "kube/net/framing/websocket.h"

#include <cstdint>

#include "base/check.h"
#include "base/random.h"

namespace {

using swell::net::WebSocketCodec;
using Role = WebSocketCodec::Role;
using Messages = std::vector<WebSocketCodec::Message>;

constexpr size_t kMessageMax = 300;

swell::Status Read(Role role, std::string_view bytes, uint64_t seed, Messages* messages) {
  swell::Random random(seed);
  WebSocketCodec codec(role, kMessageMax);
  swell::Status status;
  while (!bytes.empty() && status.ok()) {
    const std::string_view piece = bytes.substr(0, seed == 0 ? bytes.size() : 1 + random.Below(16));
    bytes.remove_prefix(piece.size());
    status = codec.Feed(piece, messages);
  }
  return status;
}

void SendAgain(Role reader, const Messages& messages) {
  const WebSocketCodec sender(reader == Role::kServer ? Role::kClient : Role::kServer, kMessageMax);
  std::string bytes;
  for (const auto& message : messages) {
    SWELL_CHECK(message.payload.size() <= kMessageMax);
    bytes += sender.Encode(message.opcode, message.payload);
  }
  Messages again;
  SWELL_CHECK(Read(reader, bytes, 1, &again).ok() && again == messages);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const Role role : {Role::kServer, Role::kClient}) {
    Messages whole;
    const swell::Status status = Read(role, bytes, 0, &whole);
    for (uint64_t seed = 1; seed < 4; ++seed) {
      Messages pieces;
      SWELL_CHECK(Read(role, bytes, seed, &pieces).ToString() == status.ToString());
      SWELL_CHECK(pieces == whole);
    }
    SendAgain(role, whole);
  }
  return 0;
}
