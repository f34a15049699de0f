#include "kube/edge/streams/spdy_connection.h"

#include "base/strings.h"

namespace swell::edge {

SpdyConnection::SpdyConnection(Role role, Executor& executor, api::DuplexPtr wire)
    : Mux(executor, std::move(wire)),
      session_(role, *this, [this](const api::Chunk& bytes) { WriteWire(bytes); }) {}

api::DuplexPtr SpdyConnection::Open(const net::Headers& headers) {
  const uint32_t id = session_.Open(headers);
  return id == 0 ? nullptr : AddStream(id);
}

void SpdyConnection::OnStream(uint32_t id, const net::Headers& headers) {
  auto stream = AddStream(id);
  session_.Reply(id);
  if (opened_) opened_({id, headers, std::move(stream)});
}

void SpdyConnection::OnReset(uint32_t id, uint32_t code) {
  DeliverEnd(id, Status(Code::kUnavailable, StrCat("the peer has reset the stream (", code, ")")));
}

void SpdyConnection::SendAbandon(uint32_t id) {
  session_.Reset(id, net::SpdySession::ResetCode::kCancel);
}

// Peers read nothing behind a GOAWAY, so it must come last; at an orderly end the closing of the
// connection says all there is to say.
void SpdyConnection::SendGoodbye(const Status& why) {
  if (!why.ok()) session_.GoAway();
}

}  // namespace swell::edge
