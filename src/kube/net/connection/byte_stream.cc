#include "kube/net/connection/byte_stream.h"

#include "base/check.h"
#include "kube/net/connection/byte_stream_state.h"

namespace swell::net {
namespace {

constexpr size_t kMaxUndelivered = 1 << 20;
constexpr Duration kLinger = std::chrono::seconds(1);

}  // namespace

ByteStream::ByteStream(std::shared_ptr<ByteStreamState> state) : state_(std::move(state)) {}
ByteStream::~ByteStream() { state_->CloseByUser(); }
void ByteStream::Start(Executor& executor,
                       std::function<void(std::string)> on_data,
                       std::function<void(Status)> on_close) {
  state_->Start(executor, std::move(on_data), std::move(on_close));
}
bool ByteStream::Write(Chunk bytes) { return state_->Write(std::move(bytes)); }
size_t ByteStream::queued_bytes() const { return state_->queued_bytes(); }
void ByteStream::SetReading(bool on) { state_->SetReading(on); }
void ByteStream::OnDrained(Executor& executor, size_t below, std::function<void()> callback) {
  state_->OnDrained(executor, below, std::move(callback));
}
void ByteStream::Close() { state_->CloseByUser(); }

void ByteStreamState::ScheduleLocked() {
  if (scheduled_ || reactor_ == nullptr) return;
  scheduled_ = true;
  reactor_->Post([self = shared_from_this()] { self->Work(); });
}

void ByteStreamState::Start(Executor& executor,
                            std::function<void(std::string)> on_data,
                            std::function<void(Status)> on_close) {
  MutexLock lock(mutex_);
  SWELL_CHECK_MSG(reader_ == nullptr, "a byte stream is started once");
  if (closing_) return;
  reader_ = &executor;
  if (over_) {
    if (on_close) executor.Post([on_close = std::move(on_close), why = why_] { on_close(why); });
    return;
  }
  callbacks_.data = std::move(on_data);
  callbacks_.close = std::move(on_close);
  ScheduleLocked();
}

bool ByteStreamState::Write(Chunk bytes) {
  MutexLock lock(mutex_);
  if (over_ || closing_ || overflow_) return false;
  if (bytes->empty()) return true;
  size_t queued = pending_bytes_ + channel_bytes_;
  if (queued > 0 && queued + bytes->size() > limit_) {
    overflow_ = true;
    ScheduleLocked();
    return false;
  }
  pending_bytes_ += bytes->size();
  pending_.push_back(std::move(bytes));
  ScheduleLocked();
  return true;
}

size_t ByteStreamState::queued_bytes() const {
  MutexLock lock(mutex_);
  return pending_bytes_ + channel_bytes_;
}

void ByteStreamState::SetReading(bool on) {
  MutexLock lock(mutex_);
  if (std::exchange(paused_, !on) == !on) return;
  ScheduleLocked();
}

void ByteStreamState::OnDrained(Executor& executor, size_t below, std::function<void()> callback) {
  MutexLock lock(mutex_);
  if (over_ || closing_) return;
  if (pending_bytes_ + channel_bytes_ < below) {
    executor.Post(std::move(callback));
    return;
  }
  drain_executor_ = &executor;
  drain_below_ = below;
  callbacks_.drained.swap(callback);
}

void ByteStreamState::CloseByUser() {
  // Destroyed after the lock: they may hold references to the stream, whose end locks again.
  Callbacks dropped;
  MutexLock lock(mutex_);
  if (closing_) return;
  closing_ = true;
  dropped = std::exchange(callbacks_, {});
  ScheduleLocked();
}

void ByteStreamState::Attach(std::shared_ptr<Channel> channel,
                             std::string first,
                             std::function<void()> released) {
  channel_ = std::move(channel);
  released_ = std::move(released);
  first_ = std::move(first);
  channel_->SetEvents(this);
  channel_->SetReading(false);  // until somebody listens
  Work();
}

void ByteStreamState::Detach(const Status& why) { Finish(why); }

bool ByteStreamState::Stalled(SteadyTime now, Duration limit) const {
  return channel_ != nullptr && channel_->queued_bytes() > 0 &&
         now - channel_->last_progress() > limit;
}

// Brings the connection in line with what the user's thread asked for.
void ByteStreamState::Work() {
  std::vector<Chunk> chunks;
  bool closing = false;
  bool overflow = false;
  bool listening = false;
  {
    MutexLock lock(mutex_);
    scheduled_ = false;
    if (channel_ == nullptr) return;  // not attached yet; Attach calls again
    chunks.swap(pending_);
    channel_bytes_ += pending_bytes_;
    pending_bytes_ = 0;
    closing = closing_;
    overflow = overflow_;
    listening = reader_ != nullptr && !paused_ && undelivered_ < kMaxUndelivered;
  }
  if (overflow) {
    Finish(Status(Code::kUnavailable, "the peer reads too slowly: its buffer is full"));
    return;
  }
  auto keep = shared_from_this();
  for (Chunk& chunk : chunks) channel_->Send(std::move(chunk));
  channel_->Flush();
  if (channel_ == nullptr) return;
  UpdateQueued();
  if (closing) {
    Linger();
    return;
  }
  if (listening && !first_.empty()) Deliver(std::exchange(first_, {}));
  channel_->SetReading(listening);
}

// Closing a socket with unread input would destroy our last words on their way; so the peer gets a
// moment to close first.
void ByteStreamState::Linger() {
  if (std::exchange(lingering_, true)) return;
  channel_->ShutdownWrite();
  channel_->SetReading(true);
  ArmLinger();
}

void ByteStreamState::ArmLinger() {
  loop_->After(kLinger, [weak = weak_from_this()] {
    auto self = weak.lock();
    if (self == nullptr || self->channel_ == nullptr) return;
    if (self->channel_->queued_bytes() == 0) {
      self->Finish(Status::Ok());
    } else {
      self->ArmLinger();  // a peer that reads nothing at all is ended by its owner
    }
  });
}

void ByteStreamState::Deliver(std::string bytes) {
  MutexLock lock(mutex_);
  if (closing_ || reader_ == nullptr) return;
  undelivered_ += bytes.size();
  reader_->Post([self = shared_from_this(), bytes = std::move(bytes)]() mutable {
    std::function<void(std::string)> callback;
    size_t size = bytes.size();
    {
      MutexLock inner(self->mutex_);
      callback = self->callbacks_.data;
    }
    if (callback) callback(std::move(bytes));
    MutexLock inner(self->mutex_);
    bool was_full = self->undelivered_ >= kMaxUndelivered;
    self->undelivered_ -= size;
    if (was_full && self->undelivered_ < kMaxUndelivered) self->ScheduleLocked();
  });
}

void ByteStreamState::OnData(std::string_view bytes) {
  if (lingering_) return;
  Deliver(std::string(bytes));
  MutexLock lock(mutex_);
  if (paused_ || undelivered_ >= kMaxUndelivered) channel_->SetReading(false);
}

void ByteStreamState::OnEof() { Finish(Status::Ok()); }
void ByteStreamState::OnError(const Status& why) { Finish(why); }

void ByteStreamState::OnProgress() { UpdateQueued(); }

void ByteStreamState::UpdateQueued() {
  MutexLock lock(mutex_);
  channel_bytes_ = channel_->queued_bytes();
  if (callbacks_.drained && pending_bytes_ + channel_bytes_ < drain_below_) {
    drain_executor_->Post(std::exchange(callbacks_.drained, nullptr));
  }
}

void ByteStreamState::Finish(const Status& why) {
  std::function<void()> dropped;  // after the lock, as in CloseByUser
  {
    MutexLock lock(mutex_);
    if (!over_) {
      over_ = true;
      why_ = why;
      pending_.clear();
      pending_bytes_ = 0;
      dropped = std::exchange(callbacks_.drained, nullptr);
      // Behind the data on the same executor. Close by the user in between withdraws it.
      if (reader_ != nullptr) {
        reader_->Post([self = shared_from_this(), why] {
          Callbacks last;
          {
            MutexLock inner(self->mutex_);
            last = std::exchange(self->callbacks_, {});
          }
          if (last.close) last.close(why);
        });
      }
    }
    reactor_ = nullptr;
  }
  ReleaseChannel();
}

void ByteStreamState::ReleaseChannel() {
  if (channel_ == nullptr) return;
  auto channel = std::move(channel_);
  channel_ = nullptr;
  channel->Close();
  if (auto released = std::exchange(released_, nullptr)) released();
}

}  // namespace swell::net
