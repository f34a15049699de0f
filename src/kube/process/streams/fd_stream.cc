#include "kube/process/streams/fd_stream.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <deque>
#include <string>
#include <utility>

#include "base/file.h"

namespace swell::process {

class CoreSide;

namespace {

constexpr size_t kReadBytes = 64 << 10;
// How long a closed stream may still have unsent words.
constexpr Duration kLinger = std::chrono::seconds(30);
constexpr char kEndOfTransmission = 4;

}  // namespace

// The I/O thread's half.
class FdIo : public std::enable_shared_from_this<FdIo> {
 public:
  FdIo(Executor& core, net::Reactor& reactor, FdStreams::Kind kind, int read_fd, int write_fd)
      : core_(core), reactor_(&reactor), kind_(kind), read_fd_(read_fd), write_fd_(write_fd) {}
  ~FdIo() { CloseAll(); }

  void Attach(std::weak_ptr<CoreSide> side) { side_ = std::move(side); }

  void Start() {
    started_ = true;
    if (read_fd_ < 0) DeliverEnd(Status::Ok());
    Update();
  }
  void SetReading(bool on) {
    wanted_ = on;
    Update();
  }
  void Taken(size_t bytes) {
    under_way_ -= bytes;
    Update();
  }
  void Enqueue(api::Chunk bytes) {
    if (write_fd_ < 0 || write_closed_) return Acknowledge(bytes->size());
    queue_.push_back(std::move(bytes));
    Flush();
  }
  void CloseWrite() {
    if (std::exchange(write_closed_, true)) return;
    if (kind_ == FdStreams::Kind::kTerminal && write_fd_ >= 0 && !closing_) {
      queue_.push_back(std::make_shared<const std::string>(1, kEndOfTransmission));
    }
    Flush();
  }
  // The core's half is gone or done.
  void Close() {
    if (std::exchange(closing_, true)) return;
    StopReading();
    write_closed_ = true;
    if (reactor_ != nullptr && !queue_.empty()) {
      reactor_->After(kLinger, [weak = weak_from_this()] {
        if (auto self = weak.lock()) self->CloseAll();
      });
      keep_ = shared_from_this();
    }
    Flush();
  }
  void EndWhenEmpty() {
    ending_ = true;
    // With nothing to read there is no readiness to wait for.
    if (started_ && wanted_ && under_way_ < api::kDuplexHighWater) ReadSome();
  }
  // The reactor ends.
  void Shut() {
    reactor_ = nullptr;
    DeliverEnd(Status(Code::kUnavailable, "the runtime is stopping"));
    CloseAll();
  }

 private:
  bool one_fd() const { return read_fd_ == write_fd_; }

  void Update() {
    if (reactor_ == nullptr) return;
    const bool read = started_ && wanted_ && !ended_ && !closing_ && read_fd_ >= 0 &&
                      under_way_ < api::kDuplexHighWater;
    const bool write = write_fd_ >= 0 && !queue_.empty();
    if (read_fd_ >= 0) Watch(read_watch_, read_fd_, net::InterestIn(read, one_fd() && write));
    if (write_fd_ >= 0 && !one_fd()) Watch(write_watch_, write_fd_, net::InterestIn(false, write));
    if (read && ending_) ReadLater();
  }
  void Watch(std::unique_ptr<net::FdWatch>& watch, int fd, net::Interest interest) {
    if (!watch && interest == net::Interest::kNone) return;
    if (!watch) {
      auto made = reactor_->Watch(fd, [weak = weak_from_this()](net::Readiness ready) {
        auto self = weak.lock();
        if (!self) return;
        if (ready.writable) self->Flush();
        if (ready.readable) self->ReadSome();
      });
      if (!made.ok()) return DeliverEnd(made.status());
      watch = std::move(*made);
    }
    watch->SetInterest(interest);
  }
  void ReadLater() {
    reactor_->Post([weak = weak_from_this()] {
      if (auto self = weak.lock()) self->ReadSome();
    });
  }

  void ReadSome() {
    if (read_fd_ < 0 || ended_ || closing_ || !wanted_ || reactor_ == nullptr) return;
    if (under_way_ >= api::kDuplexHighWater) return Update();
    const ssize_t n = ::read(read_fd_, reactor_->scratch(), kReadBytes);
    if (n > 0) {
      under_way_ += static_cast<size_t>(n);
      DeliverData(std::make_shared<const std::string>(reactor_->scratch(), static_cast<size_t>(n)));
      return Update();
    }
    const int error = n < 0 ? errno : 0;
    if (error == EINTR) return Update();
    if (error == EAGAIN && !ending_) return Update();
    // A terminal whose programs have all gone says EIO.
    const bool end =
        error == 0 || error == EAGAIN || (error == EIO && kind_ == FdStreams::Kind::kTerminal);
    DeliverEnd(end ? Status::Ok() : ErrnoStatus(error, "read"));
    StopReading();
    Update();
  }

  void Flush() {
    while (write_fd_ >= 0 && !queue_.empty()) {
      const api::Chunk& front = queue_.front();
      const ssize_t n = ::write(write_fd_, front->data() + offset_, front->size() - offset_);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return Update();
      if (n < 0) return FailWriting();
      offset_ += static_cast<size_t>(n);
      Acknowledge(static_cast<size_t>(n));
      if (offset_ < front->size()) continue;
      queue_.pop_front();
      offset_ = 0;
    }
    if (write_closed_) FinishWriting();
    Update();
  }
  // Nobody reads any more: what is left is thrown away.
  void FailWriting() {
    size_t left = 0;
    for (const api::Chunk& chunk : queue_) left += chunk->size();
    left -= offset_;
    offset_ = 0;
    queue_.clear();
    Acknowledge(left);
    write_closed_ = true;
    FinishWriting();
    Update();
  }
  void FinishWriting() {
    if (closing_) return CloseAll();
    if (write_fd_ < 0) return;
    if (kind_ == FdStreams::Kind::kSocket) {
      ::shutdown(write_fd_, SHUT_WR);
    } else if (!one_fd()) {
      write_watch_.reset();
      ::close(std::exchange(write_fd_, -1));
    }
  }

  void StopReading() {
    ended_ = true;
    if (read_fd_ < 0 || one_fd()) return;
    read_watch_.reset();
    ::close(std::exchange(read_fd_, -1));
  }
  void CloseAll() {
    read_watch_.reset();
    write_watch_.reset();
    if (read_fd_ >= 0) ::close(read_fd_);
    if (write_fd_ >= 0 && write_fd_ != read_fd_) ::close(write_fd_);
    read_fd_ = write_fd_ = -1;
    queue_.clear();
    ended_ = true;
    auto self = std::move(keep_);
  }

  void DeliverData(api::Chunk bytes);
  void DeliverEnd(const Status& why);
  void Acknowledge(size_t bytes);

  Executor& core_;
  net::Reactor* reactor_;  // null once it ends
  const FdStreams::Kind kind_;
  int read_fd_;
  int write_fd_;
  std::weak_ptr<CoreSide> side_;
  std::unique_ptr<net::FdWatch> read_watch_, write_watch_;
  std::deque<api::Chunk> queue_;
  size_t offset_ = 0;     // of the first chunk, already written
  size_t under_way_ = 0;  // read, and not yet taken by the core
  bool started_ = false;
  bool wanted_ = true;
  bool ending_ = false;
  bool ended_ = false;
  bool write_closed_ = false;
  bool closing_ = false;
  std::shared_ptr<FdIo> keep_;  // while there are last words to write
};

// The core thread's half.
class CoreSide final : public api::DuplexStream, public std::enable_shared_from_this<CoreSide> {
 public:
  CoreSide(std::shared_ptr<FdIo> io, net::Reactor& reactor, CallbackScope::Guard streams)
      : io_(std::move(io)), reactor_(reactor), streams_(std::move(streams)) {}
  ~CoreSide() override { CloseNow(); }

  void Start(Callbacks callbacks) override {
    if (closed_) return;
    callbacks_ = std::move(callbacks);
    OnIo([](FdIo& io) { io.Start(); });
  }
  void SetReading(bool on) override {
    OnIo([on](FdIo& io) { io.SetReading(on); });
  }
  bool Write(api::Chunk bytes) override {
    if (closed_ || write_closed_ || streams_.closed()) return false;
    queued_ += bytes->size();
    OnIo([bytes = std::move(bytes)](FdIo& io) { io.Enqueue(bytes); });
    return true;
  }
  size_t queued_bytes() const override { return queued_; }
  void OnDrained(std::function<void()> callback) override {
    drained_.push_back(std::move(callback));
    Acknowledged(0);
  }
  void CloseWrite() override {
    if (closed_ || std::exchange(write_closed_, true)) return;
    OnIo([](FdIo& io) { io.CloseWrite(); });
  }
  void Close() override { CloseNow(); }

  void Data(const api::Chunk& bytes) {
    if (closed_) return;
    auto on_data = callbacks_.on_data;
    if (on_data) on_data(bytes);
    OnIo([size = bytes->size()](FdIo& io) { io.Taken(size); });
  }
  void End(const Status& why) {
    if (closed_) return;
    Callbacks last = std::exchange(callbacks_, {});
    if (last.on_end) last.on_end(why);
  }
  void Acknowledged(size_t bytes) {
    queued_ -= std::min(bytes, queued_);
    if (queued_ >= api::kDuplexHighWater / 2) return;
    for (auto& fn : std::exchange(drained_, {})) fn();
  }

 private:
  template <class F>
  void OnIo(F fn) {
    if (streams_.closed()) return;
    reactor_.Post([io = io_, fn = std::move(fn)] { fn(*io); });
  }
  void CloseNow() {
    if (std::exchange(closed_, true)) return;
    Callbacks dropped = std::exchange(callbacks_, {});
    drained_.clear();
    OnIo([](FdIo& io) { io.Close(); });
  }

  std::shared_ptr<FdIo> io_;
  net::Reactor& reactor_;
  CallbackScope::Guard streams_;
  Callbacks callbacks_;
  std::vector<std::function<void()>> drained_;
  size_t queued_ = 0;
  bool write_closed_ = false;
  bool closed_ = false;
};

void FdIo::DeliverData(api::Chunk bytes) {
  core_.Post([side = side_, bytes = std::move(bytes)] {
    if (auto alive = side.lock()) alive->Data(bytes);
  });
}

void FdIo::DeliverEnd(const Status& why) {
  if (std::exchange(ended_, true)) return;
  core_.Post([side = side_, why] {
    if (auto alive = side.lock()) alive->End(why);
  });
}

void FdIo::Acknowledge(size_t bytes) {
  core_.Post([side = side_, bytes] {
    if (auto alive = side.lock()) alive->Acknowledged(bytes);
  });
}

FdStreams::FdStreams(Executor& core, net::Reactor& io) : core_(core), reactor_(io) {
  // A command that has closed its input is told by EPIPE.
  ::signal(SIGPIPE, SIG_IGN);
}

FdStreams::~FdStreams() {
  for (const auto& weak : made_) {
    if (auto io = weak.lock()) io->Shut();
  }
}

FdStream FdStreams::Make(Kind kind, int read_fd, int write_fd) {
  for (int fd : {read_fd, write_fd}) {
    if (fd >= 0) ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  }
  std::erase_if(made_, [](const auto& weak) { return weak.expired(); });
  auto io = std::make_shared<FdIo>(core_, reactor_, kind, read_fd, write_fd);
  made_.push_back(io);
  auto side = std::make_shared<CoreSide>(io, reactor_, scope_.guard());
  io->Attach(side);
  return {std::move(side), std::move(io)};
}

void FdStreams::EndWhenEmpty(const std::shared_ptr<FdIo>& io) { io->EndWhenEmpty(); }

}  // namespace swell::process
