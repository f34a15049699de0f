#include "kube/net/connection/channel.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/strings.h"

namespace swell::net {
namespace {

constexpr size_t kTlsRecordBytes = 16 << 10;  // the most that a record carries
constexpr size_t kCopyBytes = 2048;           // smaller pieces are copied together
constexpr size_t kTextBytes = 16 << 10;       // up to one TLS record
constexpr size_t kSpareBytes = 4 << 10;       // kept by an idle connection
constexpr size_t kMaxPiecesPerCall = 64;      // of one sendmsg
constexpr int kMaxReadsPerTurn = 8;           // then other connections get theirs
constexpr int kMaxWritesPerTurn = 4;          // 64 KiB of TLS records: some 50 us

}  // namespace

Channel::Channel(Reactor& reactor, UniqueFd fd, Events* events)
    : reactor_(reactor), fd_(std::move(fd)), events_(events), last_progress_(reactor.Now()) {}

Channel::~Channel() = default;

Status Channel::StartConnecting(std::shared_ptr<TlsContext> tls, const std::string& server_name) {
  tls_context_ = std::move(tls);
  server_name_ = server_name;
  SWELL_RETURN_IF_ERROR(WatchSocket());
  phase_ = Phase::kConnecting;
  UpdateInterest();
  return Status::Ok();
}

Status Channel::StartAccepted(std::shared_ptr<TlsContext> tls) {
  tls_context_ = std::move(tls);
  SWELL_RETURN_IF_ERROR(WatchSocket());
  if (tls_context_ == nullptr) {
    phase_ = Phase::kOpen;
    events_->OnOpen();
    return Status::Ok();
  }
  SWELL_ASSIGN_OR_RETURN(tls_, TlsSession::Make(tls_context_, fd_.get(), server_name_));
  phase_ = Phase::kHandshake;
  UpdateInterest();
  return Status::Ok();
}

// The watch ends before the channel does, so `this` is valid in its callback.
Status Channel::WatchSocket() {
  SWELL_ASSIGN_OR_RETURN(watch_,
                         reactor_.Watch(fd_.get(), [this](Readiness ready) { OnReady(ready); }));
  return Status::Ok();
}

void Channel::UpdateInterest() {
  if (watch_ == nullptr) return;
  const bool shaking = phase_ == Phase::kHandshake && tls_ != nullptr;
  const bool read = shaking || (phase_ == Phase::kOpen && reading_ && !saw_eof_);
  const bool write = phase_ == Phase::kConnecting || tls_wants_write_ || blocked_;
  watch_->SetInterest(InterestIn(read, write));
}

void Channel::OnReady(Readiness ready) {
  if (events_ == nullptr) return;
  if (events_->TakesTurn(ready)) {
    Proceed(ready);
  } else if (watch_ != nullptr && events_->Waits()) {
    watch_->Hold();
  }
}

void Channel::Proceed(Readiness ready) {
  auto self = shared_from_this();
  if (watch_ != nullptr) watch_->Release();
  switch (phase_) {
    case Phase::kConnecting:
      FinishConnect();
      return;
    case Phase::kHandshake:
      if (tls_ != nullptr) ContinueHandshake();
      return;
    case Phase::kClosed:
      return;
    case Phase::kOpen:
      break;
  }
  if (ready.writable && queued_bytes_ > 0) {
    size_t before = queued_bytes_;
    Flush();
    if (!closed() && queued_bytes_ < before) events_->OnProgress();
  }
  if (ready.readable && !closed() && reading_) ReadSome();
}

void Channel::FinishConnect() {
  Status outcome = ConnectOutcome(fd_.get());
  if (!outcome.ok()) return Fail(outcome);
  if (tls_context_ == nullptr) {
    phase_ = Phase::kOpen;
    UpdateInterest();
    events_->OnOpen();
    return;
  }
  auto session = TlsSession::Make(tls_context_, fd_.get(), server_name_);
  if (!session.ok()) return Fail(session.status());
  tls_ = std::move(*session);
  phase_ = Phase::kHandshake;
  ContinueHandshake();
}

void Channel::ContinueHandshake() {
  if (run_aside_ == nullptr) return FinishHandshake(tls_->Handshake());
  // Closed meanwhile, the channel leaves both to be destroyed there.
  struct Lent {
    UniqueFd fd;
    std::unique_ptr<TlsSession> tls;
  };
  auto lent = std::make_shared<Lent>(Lent{std::move(fd_), std::move(tls_)});
  UpdateInterest();
  run_aside_([self = shared_from_this(), lent] {
    const TlsSession::Io outcome = lent->tls->Handshake();
    self->reactor_.Post([self, lent, outcome] {
      if (self->closed()) return;
      self->fd_ = std::move(lent->fd);
      self->tls_ = std::move(lent->tls);
      self->FinishHandshake(outcome);
    });
  });
}

void Channel::FinishHandshake(TlsSession::Io outcome) {
  switch (outcome) {
    case TlsSession::Io::kDone:
      phase_ = Phase::kOpen;
      tls_wants_write_ = false;
      UpdateInterest();
      events_->OnOpen();
      // A request may have come in the same packet as the handshake's end.
      if (!closed() && reading_) ReadLater();
      return;
    case TlsSession::Io::kWantRead:
      tls_wants_write_ = false;
      UpdateInterest();
      return;
    case TlsSession::Io::kWantWrite:
      tls_wants_write_ = true;
      UpdateInterest();
      return;
    case TlsSession::Io::kClosed:
      return Fail(Status(Code::kUnavailable, "tls handshake: the peer closed the connection"));
    case TlsSession::Io::kError:
      break;
  }
  if (tls_->SawPlainHttp()) {
    // What people see when they type http:// for https://.
    static constexpr std::string_view kAnswer =
        "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
    (void)send(fd_.get(), kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL);
  }
  Fail(Status(Code::kUnavailable, StrCat("tls handshake: ", tls_->error())));
}

void Channel::SetReading(bool on) {
  if (on == reading_ || closed()) return;
  reading_ = on;
  UpdateInterest();
  if (on && tls_ != nullptr && phase_ == Phase::kOpen && tls_->HasPending()) ReadLater();
}

void Channel::ReadLater() {
  if (read_later_) return;
  read_later_ = true;
  reactor_.Post([self = shared_from_this()] {
    self->read_later_ = false;
    self->OnReady({.readable = true});
  });
}

void Channel::ReadSome() {
  for (int turn = 0; turn < kMaxReadsPerTurn; ++turn) {
    if (!ReadOnce()) return;
    if (closed() || !reading_ || saw_eof_) return;
  }
  // Readiness of the socket announces more, but not what TLS has already taken off it.
  if (tls_ != nullptr && tls_->HasPending()) ReadLater();
}

bool Channel::ReadOnce() {
  char* buffer = reactor_.scratch();
  size_t got = 0;
  bool eof = false;
  if (tls_ == nullptr) {
    ssize_t result = recv(fd_.get(), buffer, Reactor::kScratchBytes, 0);
    if (result < 0) {
      if (errno == EAGAIN || errno == EINTR) return false;
      Fail(Status(Code::kUnavailable, StrCat("read: ", std::strerror(errno))));
      return false;
    }
    got = static_cast<size_t>(result);
    eof = got == 0;
  } else {
    switch (tls_->Read(buffer, Reactor::kScratchBytes, &got)) {
      case TlsSession::Io::kDone:
        break;
      case TlsSession::Io::kWantRead:
      case TlsSession::Io::kWantWrite:
        return false;
      case TlsSession::Io::kClosed:
        eof = true;
        break;
      case TlsSession::Io::kError:
        Fail(Status(Code::kUnavailable, StrCat("tls read: ", tls_->error())));
        return false;
    }
  }
  if (eof) {
    saw_eof_ = true;
    UpdateInterest();
    events_->OnEof();
    return false;
  }
  // A short read has emptied the socket; asking again would only say so. The watch tells of what
  // comes after it.
  const bool more = tls_ == nullptr ? got == Reactor::kScratchBytes
                                    : got == kTlsRecordBytes || tls_->HasPending();
  events_->OnData(std::string_view(buffer, got));
  return more;
}

void Channel::Send(std::string_view bytes) {
  if (closed()) return;
  FillQueue(SIZE_MAX);
  Append(bytes);
  queued_bytes_ += bytes.size();
}

void Channel::Send(Chunk chunk) {
  if (closed()) return;
  FillQueue(SIZE_MAX);
  queued_bytes_ += chunk->size();
  Append(std::move(chunk));
}

void Channel::Send(std::vector<Chunk> body) {
  if (closed()) return;
  FillQueue(SIZE_MAX);
  body_ = std::move(body);
  body_taken_ = 0;
  for (const Chunk& chunk : body_) body_bytes_ += chunk->size();
  queued_bytes_ += body_bytes_;
}

void Channel::Append(std::string_view bytes) {
  if (bytes.empty()) return;
  if (queue_.empty()) {
    last_progress_ = reactor_.Now();
    queue_.push_back({std::move(spare_), nullptr});
    spare_ = {};
  } else if (queue_.back().chunk != nullptr ||
             queue_.back().text.size() + bytes.size() > kTextBytes) {
    queue_.push_back({});
  }
  std::string& text = queue_.back().text;
  if (body_bytes_ > kTextBytes) text.reserve(kTextBytes);
  text.append(bytes);
}

void Channel::Append(Chunk chunk) {
  if (chunk->size() <= kCopyBytes) return Append(std::string_view(*chunk));
  if (queue_.empty()) last_progress_ = reactor_.Now();
  queue_.push_back({{}, std::move(chunk)});
}

void Channel::FillQueue(size_t enough) {
  if (body_.empty()) return;
  while (body_taken_ < body_.size() && queued_bytes_ - body_bytes_ < enough) {
    Chunk chunk = std::move(body_[body_taken_++]);
    body_bytes_ -= chunk->size();
    Append(std::move(chunk));
  }
  if (body_taken_ == body_.size()) body_ = {};
}

void Channel::Flush() {
  if (phase_ != Phase::kOpen) return;
  auto self = shared_from_this();
  const Flushed flushed = tls_ == nullptr ? FlushPlain() : FlushTls();
  if (closed()) return;
  const bool blocked = flushed == Flushed::kBlocked;
  if (blocked != blocked_) {
    blocked_ = blocked;
    UpdateInterest();
  }
  if (flushed == Flushed::kAll) MaybeShutdown();
  if (flushed == Flushed::kTurnOver) FlushLater();
}

// The kernel would take more: there is no need to ask it when.
void Channel::FlushLater() {
  if (std::exchange(flush_later_, true)) return;
  reactor_.Post([self = shared_from_this()] {
    self->flush_later_ = false;
    if (self->closed() || self->blocked_) return;
    const Readiness ready{.writable = true};
    if (self->events_->TakesTurn(ready)) self->Proceed(ready);
  });
}

Channel::Flushed Channel::FlushPlain() {
  for (int turn = 0; turn < kMaxWritesPerTurn; ++turn) {
    FillQueue(kMaxPiecesPerCall * kCopyBytes);
    if (queue_.empty()) return Flushed::kAll;
    std::array<iovec, kMaxPiecesPerCall> pieces;
    size_t count = 0;
    size_t wanted = 0;
    for (const Piece& piece : queue_) {
      if (count == pieces.size()) break;
      size_t skip = count == 0 ? front_offset_ : 0;
      pieces[count++] = {const_cast<char*>(piece.data()) + skip, piece.size() - skip};
      wanted += piece.size() - skip;
    }
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    ssize_t put = sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
    if (put < 0) {
      if (errno == EAGAIN || errno == EINTR) return Flushed::kBlocked;
      Fail(Status(Code::kUnavailable, StrCat("write: ", std::strerror(errno))));
      return Flushed::kBlocked;
    }
    Sent(static_cast<size_t>(put));
    if (static_cast<size_t>(put) < wanted) return Flushed::kBlocked;
  }
  return queued_bytes_ == 0 ? Flushed::kAll : Flushed::kTurnOver;
}

// Small pieces together in one record: each record costs an encryption and a system call. A write
// that must be tried again begins with the same bytes, which is all that TLS asks.
std::string_view Channel::NextForTls(std::span<char> record) const {
  std::string_view front(queue_.front().data(), queue_.front().size());
  front.remove_prefix(front_offset_);
  if (front.size() >= record.size() || queue_.size() == 1) return front;
  size_t filled = 0;
  size_t skip = front_offset_;
  for (const Piece& piece : queue_) {
    size_t take = std::min(piece.size() - skip, record.size() - filled);
    std::memcpy(record.data() + filled, piece.data() + skip, take);
    filled += take;
    skip = 0;
    if (filled == record.size()) break;
  }
  return {record.data(), filled};
}

Channel::Flushed Channel::FlushTls() {
  for (int turn = 0; turn < kMaxWritesPerTurn; ++turn) {
    FillQueue(kTlsRecordBytes);
    if (queue_.empty()) return Flushed::kAll;
    std::array<char, kTlsRecordBytes> record;
    std::string_view next = NextForTls(record);
    size_t put = 0;
    switch (tls_->Write(next.data(), next.size(), &put)) {
      case TlsSession::Io::kDone:
        Sent(put);
        break;
      case TlsSession::Io::kWantRead:
      case TlsSession::Io::kWantWrite:
        return Flushed::kBlocked;
      case TlsSession::Io::kClosed:
        Fail(Status(Code::kUnavailable, "tls write: the peer closed the connection"));
        return Flushed::kBlocked;
      case TlsSession::Io::kError:
        Fail(Status(Code::kUnavailable, StrCat("tls write: ", tls_->error())));
        return Flushed::kBlocked;
    }
  }
  return queued_bytes_ == 0 ? Flushed::kAll : Flushed::kTurnOver;
}

void Channel::Sent(size_t bytes) {
  last_progress_ = reactor_.Now();
  queued_bytes_ -= bytes;
  while (bytes > 0) {
    Piece& front = queue_.front();
    size_t left = front.size() - front_offset_;
    if (bytes < left) {
      front_offset_ += bytes;
      return;
    }
    bytes -= left;
    front_offset_ = 0;
    if (front.chunk == nullptr && front.text.capacity() <= kSpareBytes) {
      spare_ = std::move(front.text);
      spare_.clear();
    }
    queue_.pop_front();
  }
}

void Channel::ShutdownWrite() {
  shutdown_wanted_ = true;
  if (!closed() && queued_bytes_ == 0) MaybeShutdown();
}

void Channel::MaybeShutdown() {
  if (!shutdown_wanted_ || shutdown_done_ || queued_bytes_ != 0) return;
  shutdown_done_ = true;
  if (tls_ != nullptr) tls_->SendCloseNotify();
  shutdown(fd_.get(), SHUT_WR);
}

void Channel::Close() {
  if (phase_ == Phase::kClosed) return;
  if (tls_ != nullptr && phase_ == Phase::kOpen && !shutdown_done_ && queued_bytes_ == 0) {
    tls_->SendCloseNotify();
  }
  phase_ = Phase::kClosed;
  events_ = nullptr;
  watch_ = nullptr;
  // Not the object itself: a caller further up the stack may be inside it.
  queue_.clear();
  body_ = {};
  queued_bytes_ = body_bytes_ = 0;
  tls_ = nullptr;
  fd_ = UniqueFd();
}

void Channel::Fail(const Status& why) {
  if (phase_ == Phase::kClosed) return;
  Events* events = events_;
  Close();
  events->OnError(why);
}

}  // namespace swell::net
