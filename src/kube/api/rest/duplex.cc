#include "kube/api/rest/duplex.h"

#include <deque>
#include <vector>

namespace swell::api {
namespace {

struct Direction {
  std::deque<Chunk> queue;  // until the reader takes them
  size_t queued = 0;
  bool ended = false;  // the writer is done, or the reader has closed its end
  std::vector<std::function<void()>> drained;
};

// What both ends share; a direction has the number of the end that reads it.
struct Pipe {
  explicit Pipe(Executor& executor_in) : executor(executor_in) {}
  Executor& executor;
  Direction directions[2];
  DuplexStream::Callbacks callbacks[2];
  bool reading[2] = {false, false};
  bool finished[2] = {false, false};  // on_end was called, or the end was closed
  bool posted[2] = {false, false};
};

// Hands what waits for `end` to its callbacks, piece by piece: each may change everything.
void Deliver(const std::shared_ptr<Pipe>& pipe, int end) {
  pipe->posted[end] = false;
  Direction& direction = pipe->directions[end];
  while (pipe->reading[end] && !pipe->finished[end] && !direction.queue.empty()) {
    Chunk chunk = std::move(direction.queue.front());
    direction.queue.pop_front();
    direction.queued -= chunk->size();
    if (direction.queued < kDuplexHighWater / 2) {
      for (auto& fn : std::exchange(direction.drained, {})) pipe->executor.Post(std::move(fn));
    }
    auto on_data = pipe->callbacks[end].on_data;
    if (on_data) on_data(std::move(chunk));
  }
  if (!pipe->reading[end] || pipe->finished[end] || !direction.queue.empty()) return;
  if (!direction.ended) return;
  pipe->finished[end] = true;
  auto last = std::exchange(pipe->callbacks[end], {});
  if (last.on_end) last.on_end(Status::Ok());
}

void Wake(const std::shared_ptr<Pipe>& pipe, int end) {
  if (!pipe->reading[end] || std::exchange(pipe->posted[end], true)) return;
  pipe->executor.Post([pipe, end] { Deliver(pipe, end); });
}

class PipeEnd final : public DuplexStream {
 public:
  PipeEnd(std::shared_ptr<Pipe> pipe, int end) : pipe_(std::move(pipe)), end_(end) {}
  ~PipeEnd() override { CloseNow(); }

  void Start(Callbacks callbacks) override {
    if (pipe_->finished[end_]) return;
    pipe_->callbacks[end_] = std::move(callbacks);
    SetReading(true);
  }
  void SetReading(bool on) override {
    pipe_->reading[end_] = on;
    Wake(pipe_, end_);
  }
  bool Write(Chunk bytes) override {
    Direction& to = outgoing();
    if (to.ended) return false;
    if (bytes->empty()) return true;
    to.queued += bytes->size();
    to.queue.push_back(std::move(bytes));
    Wake(pipe_, peer());
    return true;
  }
  size_t queued_bytes() const override { return pipe_->directions[1 - end_].queued; }
  void OnDrained(std::function<void()> callback) override {
    if (queued_bytes() < kDuplexHighWater / 2) {
      pipe_->executor.Post(std::move(callback));
    } else {
      outgoing().drained.push_back(std::move(callback));
    }
  }
  void CloseWrite() override {
    outgoing().ended = true;
    Wake(pipe_, peer());
  }
  void Close() override { CloseNow(); }

 private:
  void CloseNow() {
    CloseWrite();
    pipe_->finished[end_] = true;
    Callbacks dropped = std::exchange(pipe_->callbacks[end_], {});
    Direction& incoming = pipe_->directions[end_];
    incoming.queue.clear();
    incoming.queued = 0;
    incoming.ended = true;
    incoming.drained.clear();
  }
  int peer() const { return 1 - end_; }
  Direction& outgoing() { return pipe_->directions[1 - end_]; }

  std::shared_ptr<Pipe> pipe_;
  const int end_;
};

}  // namespace

void HoldBack(const DuplexPtr& from, const DuplexPtr& to) {
  if (to->queued_bytes() <= kDuplexHighWater) return;
  from->SetReading(false);
  to->OnDrained([weak = std::weak_ptr<DuplexStream>(from)] {
    if (auto alive = weak.lock()) alive->SetReading(true);
  });
}

void Splice(const DuplexPtr& a, const DuplexPtr& b) {
  auto ended = std::make_shared<int>(0);
  auto carry = [&ended](const DuplexPtr& from, const DuplexPtr& to) {
    return DuplexStream::Callbacks{.on_data =
                                       [from, to](Chunk bytes) {
                                         if (to->Write(std::move(bytes))) HoldBack(from, to);
                                       },
                                   .on_end =
                                       [from, to, ended](const Status& why) {
                                         if (why.ok() && ++*ended < 2) return to->CloseWrite();
                                         to->Close();
                                         from->Close();
                                       }};
  };
  a->Start(carry(a, b));
  b->Start(carry(b, a));
}

std::pair<DuplexPtr, DuplexPtr> MakePipe(Executor& executor) {
  auto pipe = std::make_shared<Pipe>(executor);
  return {std::make_shared<PipeEnd>(pipe, 0), std::make_shared<PipeEnd>(pipe, 1)};
}

}  // namespace swell::api
