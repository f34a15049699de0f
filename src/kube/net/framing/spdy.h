// SpdySession: SPDY/3.1's framing and streams as a state machine over bytes, for either side, as
// Kubernetes' exec, attach and port-forward speak it inside an upgraded connection. No I/O.
//
// There is no flow control per stream: Kubernetes' clients and servers neither send nor heed
// WINDOW_UPDATE, so a sender that waited for one would wait for ever. The backpressure of the
// connection bounds both directions instead.
//
// - Threads: none; one owner.
// - Ownership: `events` and whatever `send` refers to outlive the session. Events may call any
//   method, but must not destroy the session.
// - Invariants: a frame's data is handed on as it comes, never kept. Header blocks are bounded
//   before and after decompression, open streams by kStreamsMax. After an error nothing more is
//   taken.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/net/http/http.h"

namespace swell::net {

class SpdyHeaderCodec;

class SpdySession {
 public:
  enum class Role { kServer, kClient };
  enum class ResetCode : uint32_t {
    kProtocolError = 1,
    kInvalidStream = 2,
    kRefusedStream = 3,
    kCancel = 5,
    kInternalError = 6,
  };

  class Events {
   public:
    virtual ~Events() = default;
    // The peer has opened a stream; answer with Reply or Reset.
    virtual void OnStream(uint32_t id, const Headers& headers) = 0;
    virtual void OnReply(uint32_t id, const Headers& headers) = 0;
    virtual void OnData(uint32_t id, std::string_view bytes) = 0;
    // The peer sends no more on the stream.
    virtual void OnFin(uint32_t id) = 0;
    virtual void OnReset(uint32_t id, uint32_t code) = 0;
    // The peer takes no more streams.
    virtual void OnGoAway() = 0;
  };

  static constexpr size_t kStreamsMax = 2000;

  SpdySession(Role role, Events& events, std::function<void(Chunk)> send);
  ~SpdySession();
  SpdySession(const SpdySession&) = delete;
  SpdySession& operator=(const SpdySession&) = delete;

  // kBadRequest: the peer broke the protocol.
  Status Feed(std::string_view bytes);

  // Opens a stream of ours. 0: there are too many.
  uint32_t Open(const Headers& headers);
  void Reply(uint32_t id, const Headers& headers = {});
  // No effect on a stream that is closed in this direction.
  void Data(uint32_t id, const Chunk& bytes);
  void Fin(uint32_t id);
  void Reset(uint32_t id, ResetCode code);
  void Ping(uint32_t id);
  void GoAway();

  bool CanSend(uint32_t id) const;
  size_t open_streams() const { return streams_.size(); }

 private:
  struct Stream {
    bool sent_fin = false;
    bool got_fin = false;
  };

  Status TakeHead();
  Status TakeControl();
  Status TakeSynStream(std::string_view payload, uint8_t flags);
  Status TakeSynReply(std::string_view payload, uint8_t flags);
  Status TakeHeaders(std::string_view payload, uint8_t flags);
  Status TakeSimple(uint16_t type, std::string_view payload);
  void GotFin(uint32_t id);
  void SentFin(uint32_t id);
  void SendControl(uint16_t type, uint8_t flags, std::string_view payload);
  void SendHeaders(uint16_t type, std::string_view prefix, const Headers& headers);
  bool IsPeers(uint32_t id) const { return (id % 2 == 1) == (role_ == Role::kServer); }

  const Role role_;
  Events& events_;
  std::function<void(Chunk)> send_;
  std::unique_ptr<SpdyHeaderCodec> headers_;
  Status broken_;
  std::map<uint32_t, Stream> streams_;
  uint32_t next_id_;
  uint32_t last_peer_id_ = 0;

  std::string input_;  // of a head or a control frame not complete yet
  // The data frame that is being received.
  uint32_t data_id_ = 0;
  uint32_t data_left_ = 0;
  bool data_fin_ = false;
  bool in_data_ = false;
};

}  // namespace swell::net
