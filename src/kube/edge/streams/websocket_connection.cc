#include "kube/edge/streams/websocket_connection.h"

#include <utility>

#include "base/strings.h"

namespace swell::edge {
namespace {

using Codec = net::WebSocketCodec;

// What a client may send at once; Kubernetes' servers have the same bound.
constexpr size_t kMessageMax = 32 << 20;
constexpr uint8_t kCloseSignal = 255;
constexpr uint16_t kNormalClosure = 1000;
constexpr uint16_t kProtocolError = 1002;

// A tunnel is a mux of one stream.
class Tunnel final : public Mux {
 public:
  Tunnel(Codec::Role role, Executor& executor, api::DuplexPtr wire)
      : Mux(executor, std::move(wire)),
        framing_(role, [this](api::Chunk bytes) { WriteWire(std::move(bytes)); }) {}

  api::DuplexPtr Open() {
    auto stream = AddStream(0);
    Begin(nullptr);
    return stream;
  }

 private:
  Status TakeBytes(std::string_view bytes) override {
    std::vector<std::string> messages;
    const Status taken = framing_.Take(bytes, &messages);
    for (const std::string& message : messages) Deliver(0, message);
    if (framing_.closed()) DeliverEnd(0, Status::Ok());
    return taken;
  }
  void SendData(uint32_t, const api::Chunk& bytes) override { framing_.Send(*bytes); }
  void SendEnd(uint32_t) override { framing_.SendClose(Status::Ok()); }
  void SendAbandon(uint32_t) override { Close(); }
  void SendGoodbye(const Status& why) override { framing_.SendClose(why); }

  WebSocketWire framing_;
};

}  // namespace

WebSocketWire::WebSocketWire(Codec::Role role, std::function<void(api::Chunk)> send)
    : codec_(role, kMessageMax), send_(std::move(send)) {}

Status WebSocketWire::Take(std::string_view bytes, std::vector<std::string>* messages) {
  std::vector<Codec::Message> got;
  const Status fed = codec_.Feed(bytes, &got);
  // Only the last of the pings that arrived together is answered.
  const Codec::Message* ping = nullptr;
  for (Codec::Message& message : got) {
    if (closed_) break;
    switch (message.opcode) {
      case Codec::Opcode::kPing:
        ping = &message;
        break;
      case Codec::Opcode::kPong:
        break;
      case Codec::Opcode::kClose:
        SendClose(Status::Ok());
        break;
      default:
        messages->push_back(std::move(message.payload));
    }
  }
  if (ping != nullptr && !closed_) {
    send_(std::make_shared<const std::string>(codec_.Encode(Codec::Opcode::kPong, ping->payload)));
  }
  return closed_ ? Status::Ok() : fed;
}

void WebSocketWire::Send(std::string_view payload, bool text) {
  if (closed_) return;
  send_(std::make_shared<const std::string>(
      codec_.Encode(text ? Codec::Opcode::kText : Codec::Opcode::kBinary, payload)));
}

void WebSocketWire::SendClose(const Status& why) {
  if (std::exchange(closed_, true)) return;
  send_(std::make_shared<const std::string>(codec_.Encode(
      Codec::Opcode::kClose,
      Codec::ClosePayload(why.ok() ? kNormalClosure : kProtocolError, why.message()))));
}

WebSocketChannels::WebSocketChannels(Codec::Role role,
                                     Executor& executor,
                                     api::DuplexPtr wire,
                                     Form form)
    : Mux(executor, std::move(wire)),
      role_(role),
      form_(form),
      framing_(role, [this](api::Chunk bytes) { WriteWire(std::move(bytes)); }) {}

Status WebSocketChannels::TakeBytes(std::string_view bytes) {
  std::vector<std::string> messages;
  Status taken = framing_.Take(bytes, &messages);
  for (const std::string& message : messages) {
    const Status one = TakeMessage(message);
    if (!one.ok()) return one;
  }
  if (taken.ok() && framing_.closed()) {
    return Status(Code::kUnavailable, "the peer has closed the WebSocket");
  }
  return taken;
}

Status WebSocketChannels::TakeMessage(std::string_view message) {
  if (message.empty()) return Status::Ok();
  const auto number = static_cast<uint8_t>(message[0]);
  message.remove_prefix(1);
  if (form_.base64) {
    if (number < '0' || number > '9') {
      return Status(Code::kBadRequest, StrCat("channel ", int{number}, " is not a digit"));
    }
    auto bytes = Base64Decode(message);
    if (!bytes) return Status(Code::kBadRequest, "a message is not base64");
    Deliver(number - '0', *bytes);
    return Status::Ok();
  }
  if (form_.close_signal && number == kCloseSignal) {
    if (message.size() != 1) return Status(Code::kBadRequest, "a close signal names one channel");
    DeliverEnd(static_cast<uint8_t>(message[0]), Status::Ok());
    return Status::Ok();
  }
  Deliver(number, message);
  return Status::Ok();
}

void WebSocketChannels::Send(uint8_t number, std::string_view bytes) {
  if (form_.base64) {
    framing_.Send(StrCat(static_cast<char>('0' + number), Base64Encode(bytes)), true);
  } else {
    framing_.Send(StrCat(static_cast<char>(number), bytes));
  }
}

void WebSocketChannels::SendData(uint32_t id, const api::Chunk& bytes) {
  Send(static_cast<uint8_t>(id), *bytes);
}

void WebSocketChannels::SendEnd(uint32_t id) {
  // Clients do not know the signal from a server.
  if (!form_.close_signal || role_ == Codec::Role::kServer) return;
  const char signal[] = {static_cast<char>(kCloseSignal), static_cast<char>(id)};
  framing_.Send(std::string_view(signal, sizeof signal));
}

api::DuplexPtr MakeWebSocketTunnel(Codec::Role role, Executor& executor, api::DuplexPtr wire) {
  return std::make_shared<Tunnel>(role, executor, std::move(wire))->Open();
}

}  // namespace swell::edge
