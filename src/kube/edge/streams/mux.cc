#include "kube/edge/streams/mux.h"

#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace swell::edge {
namespace {

// What streams carry stays below.
constexpr size_t kUnreadMax = 2 * api::kDuplexHighWater;

}  // namespace

class Mux::Stream final : public api::DuplexStream, public std::enable_shared_from_this<Stream> {
 public:
  Stream(std::shared_ptr<Mux> mux, uint32_t id) : mux_(std::move(mux)), id_(id) {}
  ~Stream() override { Stream::Close(); }

  void Start(Callbacks callbacks) override {
    if (closed_) return;
    callbacks_ = std::move(callbacks);
    started_ = true;
    SetReading(true);
  }
  void SetReading(bool on) override {
    reading_ = on && started_;
    if (!reading_ || (waiting_.empty() && !end_)) return;
    mux_->executor_.Post([weak = weak_from_this()] {
      if (auto self = weak.lock()) self->HandOver();
    });
  }
  bool Write(api::Chunk bytes) override {
    if (closed_ || write_closed_ || mux_->over_) return false;
    if (!bytes->empty()) mux_->SendData(id_, bytes);
    return true;
  }
  size_t queued_bytes() const override { return mux_->wire_->queued_bytes(); }
  void OnDrained(std::function<void()> callback) override {
    mux_->wire_->OnDrained(std::move(callback));
  }
  void CloseWrite() override {
    if (std::exchange(write_closed_, true) || closed_ || mux_->over_) return;
    mux_->SendEnd(id_);
  }
  void Close() override {
    if (closed_) return;
    if (!mux_->over_) {
      CloseWrite();
      if (!end_) mux_->SendAbandon(id_);
    }
    closed_ = true;
    mux_->Forget(id_, this);
    Forget();
  }

  // Called by the mux with bytes from the wire.
  void Take(std::string_view bytes) {
    if (closed_ || end_) return;
    mux_->AddBuffered(bytes.size());
    buffered_ += bytes.size();
    waiting_.push_back(std::make_shared<const std::string>(bytes));
    if (reading_) HandOver();
  }
  void TakeEnd(const Status& why) {
    if (closed_ || end_) return;
    end_ = why;
    // After a break nothing more can be waited for.
    if (!why.ok()) reading_ = started_;
    if (reading_) HandOver();
  }

 private:
  void HandOver() {
    auto self = shared_from_this();
    while (reading_ && !closed_ && !waiting_.empty()) {
      api::Chunk bytes = std::move(waiting_.front());
      waiting_.pop_front();
      buffered_ -= bytes->size();
      mux_->RemoveBuffered(bytes->size());
      auto on_data = callbacks_.on_data;
      if (on_data) on_data(std::move(bytes));
    }
    if (!reading_ || closed_ || !end_ || reported_end_) return;
    reported_end_ = true;
    Callbacks last = std::exchange(callbacks_, {});
    if (last.on_end) last.on_end(*end_);
  }
  void Forget() {
    Callbacks dropped = std::exchange(callbacks_, {});
    waiting_.clear();
    mux_->RemoveBuffered(std::exchange(buffered_, 0));
  }

  const std::shared_ptr<Mux> mux_;
  const uint32_t id_;
  Callbacks callbacks_;
  std::deque<api::Chunk> waiting_;
  size_t buffered_ = 0;
  std::optional<Status> end_;
  bool reported_end_ = false;
  bool started_ = false;
  bool reading_ = false;
  bool write_closed_ = false;
  bool closed_ = false;
};

Mux::Mux(Executor& executor, api::DuplexPtr wire) : executor_(executor), wire_(std::move(wire)) {}
Mux::~Mux() = default;

void Mux::Begin(std::function<void(const Status&)> gone) {
  gone_ = std::move(gone);
  auto self = shared_from_this();
  wire_->Start({.on_data =
                    [self](const api::Chunk& bytes) {
                      if (self->over_) return;
                      const Status taken = self->TakeBytes(*bytes);
                      if (self->over_) return;
                      if (taken.ok()) return self->HoldWhileFull();
                      self->SendGoodbye(taken);
                      self->wire_->Close();
                      self->End(taken);
                    },
                .on_end =
                    [self](const Status& why) {
                      self->End(why.ok() ? Status(Code::kUnavailable, "the connection has ended")
                                         : why);
                    }});
}

void Mux::Close() {
  if (over_) return;
  auto self = shared_from_this();
  gone_ = nullptr;
  SendGoodbye(Status::Ok());
  // First: what the wire's callbacks hold ends with it.
  wire_->Close();
  End(Status(Code::kUnavailable, "the connection is closed"));
}

void Mux::End(const Status& why) {
  if (std::exchange(over_, true)) return;
  auto self = shared_from_this();
  for (auto& [id, weak] : std::exchange(streams_, {})) {
    if (auto stream = weak.lock()) stream->TakeEnd(why);
  }
  if (auto gone = std::exchange(gone_, nullptr)) gone(why);
}

api::DuplexPtr Mux::AddStream(uint32_t id) {
  auto stream = std::make_shared<Stream>(shared_from_this(), id);
  streams_[id] = stream;
  return stream;
}

void Mux::Deliver(uint32_t id, std::string_view bytes) {
  auto it = streams_.find(id);
  if (it == streams_.end()) return;
  if (auto stream = it->second.lock()) return stream->Take(bytes);
  streams_.erase(it);
}

void Mux::DeliverEnd(uint32_t id, const Status& why) {
  auto node = streams_.extract(id);
  if (node.empty()) return;
  if (auto stream = node.mapped().lock()) stream->TakeEnd(why);
}

void Mux::AddBuffered(size_t bytes) {
  buffered_ += bytes;
  if (buffered_ <= api::kDuplexHighWater || std::exchange(held_, true)) return;
  wire_->SetReading(false);
}

void Mux::RemoveBuffered(size_t bytes) {
  buffered_ -= bytes;
  if (buffered_ >= api::kDuplexHighWater / 2 || !std::exchange(held_, false)) return;
  if (!full_) wire_->SetReading(true);
}

void Mux::HoldWhileFull() {
  if (wire_->queued_bytes() <= kUnreadMax || std::exchange(full_, true)) return;
  wire_->SetReading(false);
  wire_->OnDrained([weak = weak_from_this()] {
    auto self = weak.lock();
    if (!self || self->over_) return;
    self->full_ = false;
    if (!self->held_) self->wire_->SetReading(true);
  });
}

void Mux::Forget(uint32_t id, const Stream* stream) {
  auto it = streams_.find(id);
  if (it == streams_.end()) return;
  const auto there = it->second.lock();
  if (!there || there.get() == stream) streams_.erase(it);
}

}  // namespace swell::edge
