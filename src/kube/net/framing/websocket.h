// WebSocketCodec: RFC 6455's framing as a state machine over bytes, for either side. No I/O, no
// extensions. The handshake's one computation is WebSocketAccept.
// - Threads: none; one owner.
// - Invariants: at most `message_max` bytes of an unfinished message are kept. After an error the
//   codec takes nothing more.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace swell::net {

class WebSocketCodec {
 public:
  enum class Role { kServer, kClient };
  enum class Opcode : uint8_t { kText = 1, kBinary = 2, kClose = 8, kPing = 9, kPong = 10 };
  struct Message {
    Opcode opcode = Opcode::kBinary;
    std::string payload;  // of kClose: two bytes of code, then the reason; or nothing
    bool operator==(const Message&) const = default;
  };

  WebSocketCodec(Role role, size_t message_max) : role_(role), message_max_(message_max) {}

  // Takes bytes as they come and appends the messages that they complete, control frames among
  // them, in order. kBadRequest: the peer broke the protocol; kTooLarge: its message is too long.
  Status Feed(std::string_view bytes, std::vector<Message>* messages);

  // One whole message as one frame. Clients mask it with fresh random bytes.
  std::string Encode(Opcode opcode, std::string_view payload) const;
  static std::string ClosePayload(uint16_t code, std::string_view reason);

 private:
  struct Frame {
    bool final = false;
    uint8_t opcode = 0;
    bool masked = false;
    uint8_t mask[4] = {};
    uint64_t size = 0;
    size_t head_bytes = 0;
  };
  // False when the head is not complete yet.
  static Result<bool> ReadHead(std::string_view input, Frame* frame);
  Status CheckHead(const Frame& frame) const;
  Status Take(const Frame& frame, std::string payload, std::vector<Message>* messages);

  const Role role_;
  const size_t message_max_;
  Status broken_;
  std::string input_;
  bool fragmented_ = false;
  Message partial_;
};

// Sec-WebSocket-Accept for a Sec-WebSocket-Key.
std::string WebSocketAccept(std::string_view key);

}  // namespace swell::net
