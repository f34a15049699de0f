#include "base/check.h"
#include "kube/net/http/exchange_state.h"
#include "kube/net/http/server_connection.h"

namespace swell::net {

void Mailbox::Push(std::shared_ptr<ExchangeState> state) {
  MutexLock lock(mutex_);
  if (reactor_ == nullptr) return;
  waiting_.push_back(std::move(state));
  if (std::exchange(posted_, true)) return;
  reactor_->Post([self = shared_from_this()] { self->Drain(); });
}

void Mailbox::Close() {
  MutexLock lock(mutex_);
  reactor_ = nullptr;
  waiting_.clear();
}

std::shared_ptr<ByteStreamState> Mailbox::MakeByteStream(size_t limit) {
  MutexLock lock(mutex_);
  return std::make_shared<ByteStreamState>(reactor_, limit);
}

void Mailbox::Drain() {
  std::vector<std::shared_ptr<ExchangeState>> ready;
  {
    MutexLock lock(mutex_);
    posted_ = false;
    ready.swap(waiting_);
  }
  for (auto& state : ready) {
    if (auto connection = state->connection.lock()) connection->OnExchangeWork(state);
  }
}

void ExchangeState::ScheduleLocked() {
  if (std::exchange(scheduled_, true)) return;
  mailbox_->Push(shared_from_this());
}

void ExchangeState::Respond(HttpResponse response) {
  MutexLock lock(mutex_);
  SWELL_CHECK_MSG(phase_ == Phase::kWaiting, "a request is answered once");
  phase_ = Phase::kAnswered;
  if (gone_) return;
  work_.respond = true;
  work_.head = std::move(response);
  ScheduleLocked();
}

bool ExchangeState::StartStream(int status, Headers headers) {
  MutexLock lock(mutex_);
  SWELL_CHECK_MSG(phase_ == Phase::kWaiting, "a request is answered once");
  phase_ = Phase::kStreaming;
  if (gone_) return false;
  work_.start = true;
  work_.head.status = status;
  work_.head.headers = std::move(headers);
  ScheduleLocked();
  return true;
}

bool ExchangeState::Write(Chunk chunk) {
  MutexLock lock(mutex_);
  SWELL_CHECK_MSG(phase_ != Phase::kWaiting, "Write comes after StartStream");
  if (phase_ == Phase::kAnswered || gone_ || work_.overflow) return false;
  if (chunk->empty()) return true;
  if (!HasRoomLocked() && pending_bytes_ + channel_bytes_ + chunk->size() > limit_) {
    work_.overflow = true;
    work_.chunks.clear();
    pending_bytes_ = 0;
    ScheduleLocked();
    return false;
  }
  pending_bytes_ += chunk->size();
  work_.chunks.push_back(std::move(chunk));
  ScheduleLocked();
  return true;
}

void ExchangeState::EndStream() {
  MutexLock lock(mutex_);
  SWELL_CHECK_MSG(phase_ != Phase::kWaiting, "EndStream comes after StartStream");
  if (std::exchange(phase_, Phase::kAnswered) == Phase::kAnswered || gone_) return;
  work_.end = true;
  ScheduleLocked();
}

void ExchangeState::Abort() {
  MutexLock lock(mutex_);
  phase_ = Phase::kAnswered;
  if (gone_ || finished_) return;
  work_.abort = true;
  ScheduleLocked();
}

void ExchangeState::Abandon() {
  MutexLock lock(mutex_);
  on_close_ = nullptr;
  on_drained_ = nullptr;
  if (gone_ || phase_ == Phase::kAnswered) return;
  if (phase_ == Phase::kWaiting) {
    work_.respond = true;
    work_.head = StatusResponse(Status(Code::kInternal, "the request was dropped unanswered"));
  } else {
    work_.abort = true;
  }
  phase_ = Phase::kAnswered;
  ScheduleLocked();
}

size_t ExchangeState::queued_bytes() const {
  MutexLock lock(mutex_);
  return pending_bytes_ + channel_bytes_;
}

bool ExchangeState::HasRoom() const {
  MutexLock lock(mutex_);
  return HasRoomLocked();
}

bool ExchangeState::HasRoomLocked() const { return pending_bytes_ + channel_bytes_ < limit_ / 2; }

void ExchangeState::CheckDrainedLocked() {
  if (on_drained_ && HasRoomLocked()) {
    drain_executor_->Post(std::exchange(on_drained_, nullptr));
  }
}

void ExchangeState::OnDrained(std::function<void()> callback, Executor& executor) {
  MutexLock lock(mutex_);
  if (gone_) return;
  drain_executor_ = &executor;
  on_drained_.swap(callback);
  CheckDrainedLocked();
}

void ExchangeState::NotifyCloseLocked() {
  peer_ended_ = true;
  if (on_close_) close_executor_->Post(std::exchange(on_close_, nullptr));
}

void ExchangeState::OnClose(std::function<void()> callback, Executor& executor) {
  MutexLock lock(mutex_);
  if (finished_) return;
  close_executor_ = &executor;
  on_close_.swap(callback);
  if (gone_ || peer_ended_) NotifyCloseLocked();
}

bool ExchangeState::gone() const {
  MutexLock lock(mutex_);
  return gone_;
}

std::shared_ptr<ByteStream> ExchangeState::Upgrade(Headers headers) {
  auto stream = mailbox_->MakeByteStream(limit_);
  MutexLock lock(mutex_);
  SWELL_CHECK_MSG(phase_ == Phase::kWaiting, "a request is answered once");
  phase_ = Phase::kAnswered;
  if (gone_) {
    stream->Detach(Status(Code::kUnavailable, "the peer has gone"));
  } else {
    work_.upgrade = stream;
    work_.head.status = 101;
    work_.head.headers = std::move(headers);
    ScheduleLocked();
  }
  return std::make_shared<ByteStream>(stream);
}

ExchangeState::Work ExchangeState::TakeWork() {
  MutexLock lock(mutex_);
  scheduled_ = false;
  channel_bytes_ += pending_bytes_;
  pending_bytes_ = 0;
  return std::exchange(work_, {});
}

void ExchangeState::SetChannelBytes(size_t bytes) {
  MutexLock lock(mutex_);
  channel_bytes_ = bytes;
  CheckDrainedLocked();
}

void ExchangeState::MarkGone() {
  // Destroyed after the lock: it may hold the last reference to the exchange, which locks again.
  std::function<void()> dropped;
  std::shared_ptr<ByteStreamState> upgrade;
  {
    MutexLock lock(mutex_);
    if (gone_ || finished_) return;
    gone_ = true;
    upgrade = std::move(work_.upgrade);
    work_ = {};
    dropped = std::exchange(on_drained_, nullptr);
    NotifyCloseLocked();
  }
  if (upgrade != nullptr) upgrade->Detach(Status(Code::kUnavailable, "the peer has gone"));
}

void ExchangeState::NotifyClose() {
  MutexLock lock(mutex_);
  NotifyCloseLocked();
}

void ExchangeState::MarkFinished() {
  std::function<void()> dropped[2];  // as in MarkGone
  MutexLock lock(mutex_);
  finished_ = true;
  dropped[0] = std::exchange(on_close_, nullptr);
  dropped[1] = std::exchange(on_drained_, nullptr);
}

Exchange::Exchange(std::shared_ptr<ExchangeState> state) : state_(std::move(state)) {}
Exchange::~Exchange() { state_->Abandon(); }
const HttpRequest& Exchange::request() const { return state_->request; }
HttpRequest& Exchange::mutable_request() { return state_->request; }
void Exchange::Respond(HttpResponse response) { state_->Respond(std::move(response)); }
bool Exchange::StartStream(int status, Headers headers) {
  return state_->StartStream(status, std::move(headers));
}
bool Exchange::Write(Chunk chunk) { return state_->Write(std::move(chunk)); }
void Exchange::EndStream() { state_->EndStream(); }
void Exchange::Abort() { state_->Abort(); }
size_t Exchange::queued_bytes() const { return state_->queued_bytes(); }
bool Exchange::HasRoom() const { return state_->HasRoom(); }
void Exchange::OnDrained(std::function<void()> callback, Executor& executor) {
  state_->OnDrained(std::move(callback), executor);
}
void Exchange::OnClose(std::function<void()> callback, Executor& executor) {
  state_->OnClose(std::move(callback), executor);
}
bool Exchange::gone() const { return state_->gone(); }
std::shared_ptr<ByteStream> Exchange::Upgrade(Headers headers) {
  return state_->Upgrade(std::move(headers));
}

}  // namespace swell::net
