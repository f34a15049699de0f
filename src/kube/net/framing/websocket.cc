// A frame: FIN and opcode, MASK and length (7 bits, or 16 or 64 big-endian behind 126 or 127), the
// mask's four bytes when clients send, the payload.
#include "kube/net/framing/websocket.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include "base/check.h"
#include "base/strings.h"

namespace swell::net {
namespace {

constexpr uint8_t kContinuation = 0;
constexpr uint8_t kFinal = 0x80;
constexpr uint8_t kReserved = 0x70;
constexpr uint8_t kMasked = 0x80;
constexpr size_t kControlMax = 125;
constexpr std::string_view kGuid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

bool IsControl(uint8_t opcode) { return (opcode & 8) != 0; }

bool IsKnown(uint8_t opcode) { return opcode <= 2 || (opcode >= 8 && opcode <= 10); }

void ApplyMask(std::string& payload, const uint8_t mask[4]) {
  for (size_t i = 0; i < payload.size(); ++i) {
    payload[i] = static_cast<char>(static_cast<uint8_t>(payload[i]) ^ mask[i & 3]);
  }
}

uint64_t BigEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (char c : bytes) value = value << 8 | static_cast<uint8_t>(c);
  return value;
}

Status Breach(std::string_view what) {
  return Status(Code::kBadRequest, StrCat("WebSocket: ", what));
}

}  // namespace

Result<bool> WebSocketCodec::ReadHead(std::string_view input, Frame* frame) {
  if (input.size() < 2) return false;
  const auto first = static_cast<uint8_t>(input[0]);
  const auto second = static_cast<uint8_t>(input[1]);
  if ((first & kReserved) != 0) return Breach("reserved bits are set");
  frame->final = (first & kFinal) != 0;
  frame->opcode = first & 0x0f;
  frame->masked = (second & kMasked) != 0;
  frame->size = second & 0x7f;
  size_t length_bytes = frame->size == 126 ? 2 : frame->size == 127 ? 8 : 0;
  frame->head_bytes = 2 + length_bytes + (frame->masked ? 4 : 0);
  if (input.size() < frame->head_bytes) return false;
  if (length_bytes > 0) {
    frame->size = BigEndian(input.substr(2, length_bytes));
  }
  for (size_t i = 0; frame->masked && i < 4; ++i) {
    frame->mask[i] = static_cast<uint8_t>(input[2 + length_bytes + i]);
  }
  return true;
}

Status WebSocketCodec::CheckHead(const Frame& frame) const {
  if (!IsKnown(frame.opcode)) return Breach(StrCat("unknown opcode ", int{frame.opcode}));
  if (frame.masked != (role_ == Role::kServer)) {
    return Breach(frame.masked ? "a server's frame is masked" : "a client's frame is not masked");
  }
  if (IsControl(frame.opcode)) {
    if (!frame.final || frame.size > kControlMax) {
      return Breach("a control frame is fragmented or longer than 125 bytes");
    }
    return Status::Ok();
  }
  if ((frame.opcode == kContinuation) != fragmented_) {
    return Breach(fragmented_ ? "a message begins inside another" : "nothing to continue");
  }
  if (frame.size > message_max_ || partial_.payload.size() + frame.size > message_max_) {
    return Status(Code::kTooLarge,
                  StrCat("WebSocket: a message is longer than ", message_max_, " bytes"));
  }
  return Status::Ok();
}

Status WebSocketCodec::Take(const Frame& frame,
                            std::string payload,
                            std::vector<Message>* messages) {
  if (IsControl(frame.opcode)) {
    if (frame.opcode == static_cast<uint8_t>(Opcode::kClose) && payload.size() == 1) {
      return Breach("half a close code");
    }
    messages->push_back({static_cast<Opcode>(frame.opcode), std::move(payload)});
    return Status::Ok();
  }
  if (frame.opcode != kContinuation) partial_ = {static_cast<Opcode>(frame.opcode), {}};
  if (partial_.payload.empty()) {
    partial_.payload = std::move(payload);
  } else {
    partial_.payload += payload;
  }
  fragmented_ = !frame.final;
  if (fragmented_) return Status::Ok();
  Message whole = std::exchange(partial_, {});
  if (whole.opcode == Opcode::kText && !IsValidUtf8(whole.payload)) {
    return Breach("a text message is not UTF-8");
  }
  messages->push_back(std::move(whole));
  return Status::Ok();
}

Status WebSocketCodec::Feed(std::string_view bytes, std::vector<Message>* messages) {
  if (!broken_.ok()) return broken_;
  input_ += bytes;
  // Erased once, however many small frames there are.
  std::string_view rest = input_;
  while (broken_.ok()) {
    Frame frame;
    auto complete = ReadHead(rest, &frame);
    broken_ = complete.ok() ? Status::Ok() : complete.status();
    if (broken_.ok() && *complete) broken_ = CheckHead(frame);
    if (!broken_.ok()) break;
    if (!*complete || rest.size() - frame.head_bytes < frame.size) {
      input_.erase(0, input_.size() - rest.size());
      return Status::Ok();
    }
    std::string payload(rest.substr(frame.head_bytes, frame.size));
    if (frame.masked) ApplyMask(payload, frame.mask);
    rest.remove_prefix(frame.head_bytes + frame.size);
    broken_ = Take(frame, std::move(payload), messages);
  }
  input_.clear();
  return broken_;
}

std::string WebSocketCodec::Encode(Opcode opcode, std::string_view payload) const {
  std::string out;
  out.reserve(payload.size() + 14);
  out += static_cast<char>(kFinal | static_cast<uint8_t>(opcode));
  const uint8_t mask_bit = role_ == Role::kClient ? kMasked : 0;
  auto length = [&](uint8_t code, int bytes) {
    out += static_cast<char>(mask_bit | code);
    for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(payload.size() >> (8 * i));
  };
  if (payload.size() < 126) {
    length(static_cast<uint8_t>(payload.size()), 0);
  } else if (payload.size() <= 0xffff) {
    length(126, 2);
  } else {
    length(127, 8);
  }
  if (role_ == Role::kServer) {
    out += payload;
    return out;
  }
  uint8_t mask[4];
  SWELL_CHECK(RAND_bytes(mask, sizeof mask) == 1);
  for (uint8_t byte : mask) out += static_cast<char>(byte);
  std::string masked(payload);
  ApplyMask(masked, mask);
  out += masked;
  return out;
}

std::string WebSocketCodec::ClosePayload(uint16_t code, std::string_view reason) {
  std::string out;
  out += static_cast<char>(code >> 8);
  out += static_cast<char>(code & 0xff);
  out += reason.substr(0, kControlMax - 2);
  return out;
}

std::string WebSocketAccept(std::string_view key) {
  const std::string text = StrCat(key, kGuid);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  SWELL_CHECK(EVP_Digest(text.data(), text.size(), digest, &size, EVP_sha1(), nullptr) == 1);
  return Base64Encode(std::string_view(reinterpret_cast<const char*>(digest), size));
}

}  // namespace swell::net
