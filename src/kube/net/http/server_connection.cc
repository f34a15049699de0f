#include "kube/net/http/server_connection.h"

#include "base/host_port.h"
#include "base/log.h"
#include "base/random.h"
#include "base/strings.h"

namespace swell::net {
namespace {

constexpr size_t kPipelineBytes = 64 << 10;  // read ahead of the request being handled
constexpr size_t kAnswerBacklog = 64 << 10;  // unread answers that hold back the next request

bool MayHaveBody(int status) { return status >= 200 && status != 204 && status != 304; }

}  // namespace

std::string AddressOf(std::string_view remote, int64_t uid) {
  if (uid >= 0) return "";
  return std::string(remote.starts_with("127.") ? "127.0.0.1" : WithoutPort(remote));
}

ServerConnection::ServerConnection(ServerImpl& server, PeerIdentity peer)
    : address(AddressOf(peer.remote, peer.uid)),
      server_(server),
      peer_(std::move(peer)),
      client_(StrCat("address ", address)),
      parser_({server.config.header_bytes, 256, server.config.body_bytes}),
      since_(server.reactor.Now()) {}

Status ServerConnection::Start(UniqueFd fd, std::shared_ptr<TlsContext> tls) {
  channel_ = std::make_shared<Channel>(server_.reactor, std::move(fd), this);
  channel_->ShakeHandsAside(
      [this](std::function<void()> step) { server_.ShakeAside(client_, std::move(step)); });
  return channel_->StartAccepted(std::move(tls));
}

void ServerConnection::Enter(Phase phase) {
  phase_ = phase;
  since_ = server_.reactor.Now();
}

void ServerConnection::OnOpen() {
  if (channel_->tls() != nullptr) channel_->tls()->FillIdentity(&peer_);
  if (!peer_.common_name.empty()) client_ = StrCat("certificate ", peer_.common_name);
  Enter(Phase::kIdle);
  channel_->SetReading(true);
}

void ServerConnection::OnData(std::string_view bytes) {
  switch (phase_) {
    case Phase::kIdle:
    case Phase::kHead:
    case Phase::kBody: {
      if (!buffered_.empty()) {
        buffered_.append(bytes);
        ParseBuffered();
        return;
      }
      // Usually a whole request in one read: parsed where it lies.
      size_t used = Parse(bytes);
      if (phase_ != Phase::kClosed && phase_ != Phase::kLinger) buffered_ = bytes.substr(used);
      return;
    }
    case Phase::kBusy:
    case Phase::kFlushing:
      buffered_.append(bytes);
      if (buffered_.size() >= kPipelineBytes) channel_->SetReading(false);
      return;
    case Phase::kHandshake:
    case Phase::kLinger:
    case Phase::kUpgraded:
    case Phase::kClosed:
      return;
  }
}

void ServerConnection::ParseBuffered() {
  std::string bytes = std::move(buffered_);
  buffered_.clear();
  size_t used = Parse(bytes);
  if (phase_ == Phase::kClosed || phase_ == Phase::kLinger) return;
  bytes.erase(0, used);
  buffered_ = std::move(bytes);
}

size_t ServerConnection::Parse(std::string_view bytes) {
  size_t used = 0;
  while (true) {
    RequestParser::Step step = parser_.Parse(bytes.substr(used));
    used += step.consumed;
    switch (step.result) {
      case RequestParser::Result::kNeedMore:
        if (phase_ == Phase::kIdle && !bytes.empty()) Enter(Phase::kHead);
        if (phase_ == Phase::kBody) server_.CountBody(this, parser_.body_bytes());
        return used;
      case RequestParser::Result::kHead:
        Enter(Phase::kBody);
        if (parser_.expects_continue() && used == bytes.size()) {
          channel_->Send("HTTP/1.1 100 Continue\r\n\r\n");
          channel_->Flush();
          if (phase_ == Phase::kClosed) return used;
        }
        break;
      case RequestParser::Result::kDone:
        DispatchRequest();
        return used;
      case RequestParser::Result::kError:
        server_.stats.bad_requests.fetch_add(1, std::memory_order_relaxed);
        Refuse(parser_.error().http_status, parser_.error().message);
        return used;
    }
  }
}

void ServerConnection::DispatchRequest() {
  server_.ForgetBody(this);
  keep_alive_ = parser_.keep_alive() && !server_.draining() && !peer_ended_;
  http10_ = parser_.http10();
  first_request_ = false;
  HttpRequest request = parser_.Take();
  head_request_ = request.method == "HEAD";
  request.peer = peer_;
  if (peer_.common_name.empty()) {
    const std::string* token = FindHeader(request.headers, "Authorization");
    client_ = token ? StrCat("token ", StableHash(*token)) : StrCat("address ", address);
  }
  request.client = client_;
  Enter(Phase::kBusy);
  server_.SetWaiting(this, false);
  current_ = std::make_shared<ExchangeState>(std::move(request), server_.mailbox,
                                             server_.config.stream_buffer_bytes, weak_from_this());
  server_.Dispatch(current_);
}

void ServerConnection::Refuse(int http_status, const std::string& message) {
  Code code = http_status == 413   ? Code::kTooLarge
              : http_status == 408 ? Code::kTimeout
                                   : Code::kBadRequest;
  server_.ForgetBody(this);
  keep_alive_ = false;
  head_request_ = false;
  WriteAnswer(StatusResponse(Status(code, message), http_status));
  channel_->Flush();
  if (phase_ != Phase::kClosed) BeginLinger();
}

void ServerConnection::OnExchangeWork(const std::shared_ptr<ExchangeState>& state) {
  if (state != current_ || phase_ != Phase::kBusy) return;
  due_.answer = true;
  server_.TakeTurn(shared_from_this());
}

bool ServerConnection::TakesTurn(Readiness ready) {
  due_.ready.readable |= ready.readable;
  due_.ready.writable |= ready.writable;
  server_.TakeTurn(shared_from_this());
  return false;
}

void ServerConnection::Serve() {
  const Due due = std::exchange(due_, {});
  if (due.answer) Answer();
  if (due.ready.readable || due.ready.writable) channel_->Proceed(due.ready);
}

void ServerConnection::Answer() {
  if (current_ == nullptr || phase_ != Phase::kBusy) return;
  const std::shared_ptr<ExchangeState> state = current_;
  ExchangeState::Work work = state->TakeWork();
  if (work.overflow || work.abort) {
    if (work.overflow) server_.stats.overflows.fetch_add(1, std::memory_order_relaxed);
    Close(Status(Code::kUnavailable, work.overflow ? "the peer reads too slowly" : "aborted"));
    return;
  }
  if (work.upgrade != nullptr) {
    HandOver(work.head, std::move(work.upgrade));
    return;
  }
  if (work.respond) WriteAnswer(std::move(work.head));
  if (work.start) WriteStreamHead(work.head);
  WriteChunks(std::move(work.chunks));
  if (work.end && chunked_ && !head_request_) channel_->Send("0\r\n\r\n");
  channel_->Flush();
  if (phase_ != Phase::kBusy) return;  // the peer is gone
  if (work.respond || work.end) {
    FinishAnswer();
  } else {
    state->SetChannelBytes(channel_->queued_bytes());
    if (streaming_ && peer_ended_) Close(Status(Code::kUnavailable, "the peer has gone"));
  }
}

void ServerConnection::WriteAnswer(HttpResponse response) {
  if (server_.draining()) keep_alive_ = false;
  bool body = MayHaveBody(response.status);
  scratch_.clear();
  AppendResponseHead(&scratch_, response.status, response.headers,
                     body ? Framing::kLength : Framing::kNone, BodySize(response.body), keep_alive_,
                     server_.Date());
  // HTTP/1.0 peers close unless they are told not to.
  if (http10_ && keep_alive_) {
    scratch_.resize(scratch_.size() - 2);
    scratch_ += "Connection: keep-alive\r\n\r\n";
  }
  channel_->Send(std::string_view(scratch_));
  if (!body || head_request_) return;
  channel_->Send(std::move(response.body));
}

void ServerConnection::WriteStreamHead(const HttpResponse& head) {
  streaming_ = true;
  bool body = MayHaveBody(head.status);
  chunked_ = body && !http10_;
  if (http10_ || server_.draining()) keep_alive_ = false;
  Framing framing = !body ? Framing::kNone : chunked_ ? Framing::kChunked : Framing::kUntilClose;
  scratch_.clear();
  AppendResponseHead(&scratch_, head.status, head.headers, framing, 0, keep_alive_, server_.Date());
  channel_->Send(std::string_view(scratch_));
  if (!body) head_request_ = true;
}

void ServerConnection::WriteChunks(std::vector<Chunk> chunks) {
  if (head_request_) return;
  for (Chunk& chunk : chunks) {
    if (!chunked_) {
      channel_->Send(std::move(chunk));
      continue;
    }
    scratch_.clear();
    AppendChunkHeader(&scratch_, chunk->size());
    channel_->Send(std::string_view(scratch_));
    channel_->Send(std::move(chunk));
    channel_->Send("\r\n");
  }
}

void ServerConnection::FinishAnswer() {
  current_->MarkFinished();
  current_ = nullptr;
  streaming_ = false;
  chunked_ = false;
  if (!keep_alive_ || peer_ended_) {
    BeginLinger();
    return;
  }
  Enter(Phase::kFlushing);
  NextRequest();
}

// A peer that pipelines without reading must not pile up answers here.
void ServerConnection::NextRequest() {
  if (channel_->queued_bytes() > kAnswerBacklog) return;
  Enter(Phase::kIdle);
  server_.SetWaiting(this, true);
  channel_->SetReading(true);
  if (!buffered_.empty()) ParseBuffered();
}

// Closing with unread input would make the kernel destroy the answer on its way. So: say that
// nothing follows, read and forget until the peer closes or the time is up.
void ServerConnection::BeginLinger() {
  buffered_.clear();
  Enter(Phase::kLinger);
  channel_->ShutdownWrite();
  if (peer_ended_ && channel_->queued_bytes() == 0) {
    Close(Status::Ok());
    return;
  }
  channel_->SetReading(true);
}

void ServerConnection::HandOver(const HttpResponse& head, std::shared_ptr<ByteStreamState> stream) {
  scratch_.clear();
  AppendResponseHead(&scratch_, 101, head.headers, Framing::kNone, 0, true, server_.Date());
  channel_->Send(std::string_view(scratch_));
  current_->MarkFinished();
  current_ = nullptr;
  Enter(Phase::kUpgraded);
  upgraded_ = stream;
  upgraded_->Attach(channel_, std::move(buffered_), [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->Close(Status::Ok());
  });
}

void ServerConnection::OnEof() {
  peer_ended_ = true;
  if (phase_ == Phase::kBusy && !streaming_) {
    // It may only have ended its own half: it still gets its answer, but the handler may give up.
    current_->NotifyClose();
    return;
  }
  if (channel_->queued_bytes() > 0) {
    if (phase_ == Phase::kLinger) return;
    if (phase_ == Phase::kIdle || phase_ == Phase::kFlushing) {
      BeginLinger();  // it still reads its last answers
      return;
    }
  }
  Close(Status(Code::kUnavailable, "the peer has closed the connection"));
}

void ServerConnection::OnProgress() {
  if (phase_ == Phase::kFlushing) {
    NextRequest();
  } else if (phase_ == Phase::kLinger) {
    if (channel_->queued_bytes() == 0) {
      since_ = server_.reactor.Now();
      if (peer_ended_) Close(Status::Ok());
    }
  } else if (current_ != nullptr) {
    current_->SetChannelBytes(channel_->queued_bytes());
  }
}

void ServerConnection::OnError(const Status& why) { Close(why); }

void ServerConnection::Drain() {
  keep_alive_ = false;
  if (phase_ != Phase::kIdle || !buffered_.empty()) return;
  if (channel_->queued_bytes() > 0) {
    BeginLinger();
  } else {
    Close(Status::Ok());
  }
}

void ServerConnection::CheckTimeouts(SteadyTime now, Duration write_stall_timeout) {
  const ServerConfig& config = server_.config;
  Duration spent = now - since_;
  const char* why = nullptr;
  switch (phase_) {
    case Phase::kHandshake:
      if (spent > config.tls_handshake_timeout) why = "TLS handshake took too long";
      break;
    case Phase::kIdle:
      if (spent > (first_request_ ? config.header_timeout : config.idle_timeout)) {
        Close(Status::Ok());
        return;
      }
      break;
    case Phase::kHead:
    case Phase::kBody: {
      bool head = phase_ == Phase::kHead;
      if (spent <= (head ? config.header_timeout : config.body_timeout)) break;
      server_.stats.timeouts.fetch_add(1, std::memory_order_relaxed);
      Refuse(408, head ? "the request's head took too long" : "the request's body took too long");
      return;
    }
    case Phase::kLinger:
      if (channel_->queued_bytes() == 0 && spent > config.linger_timeout) {
        Close(Status::Ok());
        return;
      }
      break;
    case Phase::kUpgraded:
      if (upgraded_->Stalled(now, config.upgraded_stall_timeout)) {
        server_.stats.timeouts.fetch_add(1, std::memory_order_relaxed);
        upgraded_->Detach(Status(Code::kTimeout, "the peer reads nothing"));
      }
      return;
    case Phase::kBusy:
    case Phase::kFlushing:
    case Phase::kClosed:
      break;
  }
  if (phase_ != Phase::kClosed && channel_->queued_bytes() > 0 &&
      now - channel_->last_progress() > write_stall_timeout) {
    why = "the peer reads nothing";
  }
  if (why == nullptr) return;
  server_.stats.timeouts.fetch_add(1, std::memory_order_relaxed);
  Close(Status(Code::kTimeout, why));
}

void ServerConnection::Close(const Status& why) {
  if (phase_ == Phase::kClosed) return;
  if (phase_ == Phase::kHandshake && !why.ok()) {
    SWELL_LOG_DEBUG("net", "handshake failed", {"peer", peer_.remote}, {"why", why.message()});
  }
  phase_ = Phase::kClosed;
  server_.ForgetBody(this);
  auto self = shared_from_this();
  channel_->Close();
  if (auto exchange = std::move(current_)) exchange->MarkGone();
  if (auto stream = std::move(upgraded_)) stream->Detach(why.ok() ? Status::Ok() : why);
  buffered_.clear();
  server_.Remove(this);
}

}  // namespace swell::net
