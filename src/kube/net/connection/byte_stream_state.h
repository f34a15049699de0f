// ByteStreamState: the half of a ByteStream that both threads share. Internal to net.
// - Threads: the methods under "any thread" lock; the rest run on the reactor's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "kube/net/connection/byte_stream.h"
#include "kube/net/connection/channel.h"

namespace swell::net {

class ByteStreamState final : public Channel::Events,
                              public std::enable_shared_from_this<ByteStreamState> {
 public:
  // A null reactor makes a stream that is only good for Detach.
  ByteStreamState(Reactor* reactor, size_t limit)
      : loop_(reactor), reactor_(reactor), limit_(limit) {}

  // Any thread.
  void Start(Executor& executor,
             std::function<void(std::string)> on_data,
             std::function<void(Status)> on_close);
  void SetReading(bool on);
  bool Write(Chunk bytes);
  size_t queued_bytes() const;
  void OnDrained(Executor& executor, size_t below, std::function<void()> callback);
  void CloseByUser();

  // Takes the connection over; `first` came behind the upgrade. `released` runs when it is closed.
  void Attach(std::shared_ptr<Channel> channel, std::string first, std::function<void()> released);
  // The connection will never come, or its server ends.
  void Detach(const Status& why);
  // True when the peer has taken nothing for that long.
  bool Stalled(SteadyTime now, Duration limit) const;

  void OnOpen() override {}
  void OnData(std::string_view bytes) override;
  void OnEof() override;
  void OnProgress() override;
  void OnError(const Status& why) override;

 private:
  struct Callbacks {
    std::function<void(std::string)> data;
    std::function<void(Status)> close;
    std::function<void()> drained;
  };

  // Asks the reactor's thread to look at what changed.
  void ScheduleLocked() SWELL_REQUIRES(mutex_);
  void Work();
  void Linger();
  void ArmLinger();
  void Deliver(std::string bytes);
  void Finish(const Status& why);
  void UpdateQueued();
  void ReleaseChannel();

  Reactor* const loop_;  // for the reactor's thread, while there is a channel
  mutable Mutex mutex_;
  Reactor* reactor_ SWELL_GUARDED_BY(mutex_);  // null once the connection is over
  bool scheduled_ SWELL_GUARDED_BY(mutex_) = false;
  bool closing_ SWELL_GUARDED_BY(mutex_) = false;  // by the user: no callbacks any more
  bool over_ SWELL_GUARDED_BY(mutex_) = false;
  std::vector<Chunk> pending_ SWELL_GUARDED_BY(mutex_);
  size_t pending_bytes_ SWELL_GUARDED_BY(mutex_) = 0;
  size_t channel_bytes_ SWELL_GUARDED_BY(mutex_) = 0;
  bool overflow_ SWELL_GUARDED_BY(mutex_) = false;
  Executor* reader_ SWELL_GUARDED_BY(mutex_) = nullptr;
  bool paused_ SWELL_GUARDED_BY(mutex_) = false;  // by the user
  Callbacks callbacks_ SWELL_GUARDED_BY(mutex_);
  Executor* drain_executor_ SWELL_GUARDED_BY(mutex_) = nullptr;
  size_t drain_below_ SWELL_GUARDED_BY(mutex_) = 0;
  size_t undelivered_ SWELL_GUARDED_BY(mutex_) = 0;
  Status why_ SWELL_GUARDED_BY(mutex_);

  const size_t limit_;
  std::shared_ptr<Channel> channel_;
  std::function<void()> released_;
  std::string first_;
  bool lingering_ = false;
};

}  // namespace swell::net
