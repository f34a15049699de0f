// WebSocket over a duplex stream: as several numbered channels (*.channel.k8s.io), or as one stream
// of bytes (a tunnel for another protocol).
//
// Channels: the first byte of a message is the channel's number; in base64.channel.k8s.io it is a
// digit, and base64 follows. In v5.channel.k8s.io a client's message 255 with a channel behind it
// closes that channel.
//
// - Threads: as Mux.
// - Ownership: as Mux.
#pragma once

#include <string>
#include <vector>

#include "kube/edge/streams/mux.h"
#include "kube/net/framing/websocket.h"

namespace swell::edge {

// One side's framing over the wire: pings are answered, closes agreed to.
class WebSocketWire {
 public:
  using Codec = net::WebSocketCodec;
  WebSocketWire(Codec::Role role, std::function<void(api::Chunk)> send);

  // Data messages that the bytes complete. An error ends the connection; OK with closed() the peer
  // has ended it in good order.
  Status Take(std::string_view bytes, std::vector<std::string>* messages);
  void Send(std::string_view payload, bool text = false);
  void SendClose(const Status& why);
  bool closed() const { return closed_; }

 private:
  Codec codec_;
  std::function<void(api::Chunk)> send_;
  bool closed_ = false;
};

class WebSocketChannels final : public Mux {
 public:
  struct Form {
    bool base64 = false;
    bool close_signal = false;  // v5
  };
  WebSocketChannels(net::WebSocketCodec::Role role,
                    Executor& executor,
                    api::DuplexPtr wire,
                    Form form);

  // The channel of that number. Before Begin.
  api::DuplexPtr Channel(uint8_t number) { return AddStream(number); }
  // A message of no bytes tells the peer that the channel is there.
  void Announce(uint8_t number) { Send(number, ""); }

 private:
  Status TakeBytes(std::string_view bytes) override;
  void SendData(uint32_t id, const api::Chunk& bytes) override;
  void SendEnd(uint32_t id) override;
  void SendAbandon(uint32_t) override {}
  void SendGoodbye(const Status& why) override { framing_.SendClose(why); }
  Status TakeMessage(std::string_view message);
  void Send(uint8_t number, std::string_view bytes);

  const net::WebSocketCodec::Role role_;
  const Form form_;
  WebSocketWire framing_;
};

// The bytes of all messages, one after the other, as a stream of their own.
api::DuplexPtr MakeWebSocketTunnel(net::WebSocketCodec::Role role,
                                   Executor& executor,
                                   api::DuplexPtr wire);

}  // namespace swell::edge
