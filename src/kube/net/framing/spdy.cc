// A frame begins with eight bytes. Control: a set bit, 15 bits of version (3), 16 of type. Data: a
// clear bit, 31 bits of stream. Then, in both, 8 bits of flags and 24 of length.
#include "kube/net/framing/spdy.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/net/framing/spdy_headers.h"

namespace swell::net {
namespace {

constexpr uint16_t kVersion = 3;
constexpr uint16_t kSynStream = 1;
constexpr uint16_t kSynReply = 2;
constexpr uint16_t kRstStream = 3;
constexpr uint16_t kSettings = 4;
constexpr uint16_t kPing = 6;
constexpr uint16_t kGoAway = 7;
constexpr uint16_t kHeaders = 8;
constexpr uint16_t kWindowUpdate = 9;
constexpr uint8_t kFlagFin = 1;

constexpr size_t kHeadBytes = 8;
constexpr size_t kControlMax = 64 << 10;
constexpr size_t kDataMax = (1 << 24) - 1;
constexpr uint32_t kIdMask = 0x7fffffff;

void Put32(std::string& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
}

uint32_t Get32(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (char c : bytes.substr(at, 4)) value = value << 8 | static_cast<uint8_t>(c);
  return value;
}

Status Breach(std::string_view what) { return Status(Code::kBadRequest, StrCat("SPDY: ", what)); }

}  // namespace

SpdySession::SpdySession(Role role, Events& events, std::function<void(Chunk)> send)
    : role_(role),
      events_(events),
      send_(std::move(send)),
      headers_(std::make_unique<SpdyHeaderCodec>()),
      next_id_(role == Role::kClient ? 1 : 2) {}

SpdySession::~SpdySession() = default;

// ---- in ----

Status SpdySession::Feed(std::string_view bytes) {
  while (broken_.ok()) {
    if (in_data_) {
      const std::string_view piece = bytes.substr(0, data_left_);
      bytes.remove_prefix(piece.size());
      data_left_ -= static_cast<uint32_t>(piece.size());
      const auto it = streams_.find(data_id_);
      const bool wanted = it != streams_.end() && !it->second.got_fin;
      if (wanted && !piece.empty()) events_.OnData(data_id_, piece);
      if (data_left_ > 0) return Status::Ok();
      in_data_ = false;
      if (data_fin_) GotFin(data_id_);
      continue;
    }
    if (input_.size() < kHeadBytes) {
      const std::string_view piece = bytes.substr(0, kHeadBytes - input_.size());
      input_ += piece;
      bytes.remove_prefix(piece.size());
      if (input_.size() < kHeadBytes) return Status::Ok();
      broken_ = TakeHead();
      continue;
    }
    const size_t whole = kHeadBytes + (Get32(input_, 4) & 0xffffff);
    const std::string_view piece = bytes.substr(0, whole - input_.size());
    input_ += piece;
    bytes.remove_prefix(piece.size());
    if (input_.size() < whole) return Status::Ok();
    broken_ = TakeControl();
    input_.clear();
  }
  return broken_;
}

Status SpdySession::TakeHead() {
  const uint32_t first = Get32(input_, 0);
  const uint32_t second = Get32(input_, 4);
  const uint32_t size = second & 0xffffff;
  if ((first & ~kIdMask) == 0) {
    if (first == 0) return Breach("data on stream 0");
    in_data_ = true;
    data_id_ = first;
    data_left_ = size;
    data_fin_ = (second >> 24 & kFlagFin) != 0;
    input_.clear();
    return Status::Ok();
  }
  const uint32_t version = first >> 16 & 0x7fff;
  if (version != kVersion) return Breach(StrCat("version ", version));
  if (size > kControlMax) return Breach(StrCat("a control frame of ", size, " bytes"));
  return Status::Ok();
}

Status SpdySession::TakeControl() {
  const auto type = static_cast<uint16_t>(Get32(input_, 0) & 0xffff);
  const auto flags = static_cast<uint8_t>(input_[4]);
  const std::string frame = std::move(input_);  // events may feed us nothing, but send
  const std::string_view payload = std::string_view(frame).substr(kHeadBytes);
  switch (type) {
    case kSynStream:
      return TakeSynStream(payload, flags);
    case kSynReply:
      return TakeSynReply(payload, flags);
    case kHeaders:
      return TakeHeaders(payload, flags);
    default:
      return TakeSimple(type, payload);
  }
}

Status SpdySession::TakeSynStream(std::string_view payload, uint8_t flags) {
  if (payload.size() < 10) return Breach("SYN_STREAM is cut off");
  const uint32_t id = Get32(payload, 0) & kIdMask;
  // Decoded whatever becomes of the stream: later blocks depend on it.
  SWELL_ASSIGN_OR_RETURN(const Headers headers, headers_->Decode(payload.substr(10)));
  if (id == 0 || !IsPeers(id) || id <= last_peer_id_) {
    return Breach(StrCat("SYN_STREAM opens stream ", id));
  }
  last_peer_id_ = id;
  if (streams_.size() >= kStreamsMax) {
    streams_[id];
    Reset(id, ResetCode::kRefusedStream);
    return Status::Ok();
  }
  streams_[id];
  events_.OnStream(id, headers);
  if ((flags & kFlagFin) != 0) GotFin(id);
  return Status::Ok();
}

Status SpdySession::TakeSynReply(std::string_view payload, uint8_t flags) {
  if (payload.size() < 4) return Breach("SYN_REPLY is cut off");
  const uint32_t id = Get32(payload, 0) & kIdMask;
  SWELL_ASSIGN_OR_RETURN(const Headers headers, headers_->Decode(payload.substr(4)));
  if (!streams_.contains(id) || IsPeers(id)) return Status::Ok();  // closed by us meanwhile
  events_.OnReply(id, headers);
  if ((flags & kFlagFin) != 0) GotFin(id);
  return Status::Ok();
}

Status SpdySession::TakeHeaders(std::string_view payload, uint8_t flags) {
  if (payload.size() < 4) return Breach("HEADERS is cut off");
  const uint32_t id = Get32(payload, 0) & kIdMask;
  SWELL_RETURN_IF_ERROR(headers_->Decode(payload.substr(4)).status());
  if ((flags & kFlagFin) != 0) GotFin(id);
  return Status::Ok();
}

Status SpdySession::TakeSimple(uint16_t type, std::string_view payload) {
  switch (type) {
    case kRstStream: {
      if (payload.size() != 8) return Breach("RST_STREAM is not 8 bytes long");
      const uint32_t id = Get32(payload, 0) & kIdMask;
      if (streams_.erase(id) > 0) events_.OnReset(id, Get32(payload, 4));
      return Status::Ok();
    }
    case kPing: {
      if (payload.size() != 4) return Breach("PING is not 4 bytes long");
      const uint32_t id = Get32(payload, 0);
      if (IsPeers(id)) SendControl(kPing, 0, payload);  // else the answer to one of ours
      return Status::Ok();
    }
    case kGoAway:
      events_.OnGoAway();
      return Status::Ok();
    case kSettings:
    case kWindowUpdate:
    default:
      return Status::Ok();  // of types unknown the specification says: ignore
  }
}

void SpdySession::GotFin(uint32_t id) {
  const auto it = streams_.find(id);
  if (it == streams_.end() || it->second.got_fin) return;
  it->second.got_fin = true;
  if (it->second.sent_fin) streams_.erase(it);
  events_.OnFin(id);
}

// ---- out ----

void SpdySession::SendControl(uint16_t type, uint8_t flags, std::string_view payload) {
  std::string out;
  out.reserve(kHeadBytes + payload.size());
  Put32(out, uint32_t{0x80000000} | uint32_t{kVersion} << 16 | type);
  Put32(out, uint32_t{flags} << 24 | static_cast<uint32_t>(payload.size()));
  out += payload;
  send_(MakeChunk(std::move(out)));
}

void SpdySession::SendHeaders(uint16_t type, std::string_view prefix, const Headers& headers) {
  SendControl(type, 0, StrCat(prefix, headers_->Encode(headers)));
}

uint32_t SpdySession::Open(const Headers& headers) {
  if (streams_.size() >= kStreamsMax || next_id_ > kIdMask - 2) return 0;
  const uint32_t id = next_id_;
  next_id_ += 2;
  streams_[id];
  std::string prefix;
  Put32(prefix, id);
  Put32(prefix, 0);        // associated to no other stream
  prefix.append(2, '\0');  // the highest priority, and no credential slot
  SendHeaders(kSynStream, prefix, headers);
  return id;
}

void SpdySession::Reply(uint32_t id, const Headers& headers) {
  if (!streams_.contains(id)) return;
  std::string prefix;
  Put32(prefix, id);
  SendHeaders(kSynReply, prefix, headers);
}

void SpdySession::Data(uint32_t id, const Chunk& bytes) {
  if (!CanSend(id)) return;
  for (size_t at = 0; at < bytes->size(); at += kDataMax) {
    const size_t size = std::min(kDataMax, bytes->size() - at);
    std::string head;
    Put32(head, id);
    Put32(head, static_cast<uint32_t>(size));
    send_(MakeChunk(std::move(head)));
    send_(size == bytes->size() ? bytes : MakeChunk(bytes->substr(at, size)));
  }
}

void SpdySession::Fin(uint32_t id) {
  if (!CanSend(id)) return;
  std::string head;
  Put32(head, id);
  Put32(head, uint32_t{kFlagFin} << 24);
  send_(MakeChunk(std::move(head)));
  SentFin(id);
}

void SpdySession::SentFin(uint32_t id) {
  const auto it = streams_.find(id);
  it->second.sent_fin = true;
  if (it->second.got_fin) streams_.erase(it);
}

void SpdySession::Reset(uint32_t id, ResetCode code) {
  if (streams_.erase(id) == 0) return;
  std::string payload;
  Put32(payload, id);
  Put32(payload, static_cast<uint32_t>(code));
  SendControl(kRstStream, 0, payload);
}

void SpdySession::Ping(uint32_t id) {
  std::string payload;
  Put32(payload, id);
  SendControl(kPing, 0, payload);
}

void SpdySession::GoAway() {
  std::string payload;
  Put32(payload, last_peer_id_);
  Put32(payload, 0);
  SendControl(kGoAway, 0, payload);
}

bool SpdySession::CanSend(uint32_t id) const {
  const auto it = streams_.find(id);
  return it != streams_.end() && !it->second.sent_fin;
}

}  // namespace swell::net
