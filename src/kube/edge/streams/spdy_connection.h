// SpdyConnection: SPDY/3.1 over a duplex stream; its streams are duplex streams with headers.
// - Threads: as Mux.
// - Ownership: as Mux.
#pragma once

#include "kube/edge/streams/mux.h"
#include "kube/net/framing/spdy.h"

namespace swell::edge {

class SpdyConnection final : public Mux, private net::SpdySession::Events {
 public:
  struct Accepted {
    uint32_t id = 0;
    net::Headers headers;
    api::DuplexPtr stream;
  };
  using Role = net::SpdySession::Role;

  SpdyConnection(Role role, Executor& executor, api::DuplexPtr wire);

  // For each stream that the peer opens. Dropping it refuses it.
  void OnOpened(std::function<void(Accepted)> opened) { opened_ = std::move(opened); }
  // A stream of ours; null: there are too many. It may be written to before the peer has answered.
  api::DuplexPtr Open(const net::Headers& headers);

 private:
  Status TakeBytes(std::string_view bytes) override { return session_.Feed(bytes); }
  void SendData(uint32_t id, const api::Chunk& bytes) override { session_.Data(id, bytes); }
  void SendEnd(uint32_t id) override { session_.Fin(id); }
  void SendAbandon(uint32_t id) override;
  void SendGoodbye(const Status& why) override;

  void OnStream(uint32_t id, const net::Headers& headers) override;
  void OnReply(uint32_t, const net::Headers&) override {}
  void OnData(uint32_t id, std::string_view bytes) override { Deliver(id, bytes); }
  void OnFin(uint32_t id) override { DeliverEnd(id, Status::Ok()); }
  void OnReset(uint32_t id, uint32_t code) override;
  void OnGoAway() override {}

  net::SpdySession session_;
  std::function<void(Accepted)> opened_;
};

}  // namespace swell::edge
