// ExchangeState: what the handler's thread and the I/O thread share about one request, and the
// Mailbox that carries news from the former to the latter. Internal to net.
// - Threads: as marked. A mutex per exchange; the I/O thread holds it for moments only.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "kube/net/connection/byte_stream_state.h"
#include "kube/net/http/server.h"

namespace swell::net {

class ServerConnection;

// Exchanges with something to do for the I/O thread. However many answer at once, the thread is
// woken once.
class Mailbox : public std::enable_shared_from_this<Mailbox> {
 public:
  explicit Mailbox(Reactor& reactor) : reactor_(&reactor) {}

  // Any thread.
  void Push(std::shared_ptr<ExchangeState> state);
  // I/O thread: nothing is delivered afterwards.
  void Close();
  std::shared_ptr<ByteStreamState> MakeByteStream(size_t limit);

 private:
  void Drain();

  Mutex mutex_;
  Reactor* reactor_ SWELL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<ExchangeState>> waiting_ SWELL_GUARDED_BY(mutex_);
  bool posted_ SWELL_GUARDED_BY(mutex_) = false;
};

class ExchangeState : public std::enable_shared_from_this<ExchangeState> {
 public:
  ExchangeState(HttpRequest request,
                std::shared_ptr<Mailbox> mailbox,
                size_t limit,
                std::weak_ptr<ServerConnection> connection)
      : request(std::move(request)),
        connection(std::move(connection)),
        mailbox_(std::move(mailbox)),
        limit_(limit) {}

  // What the handler asked for since the last TakeWork.
  struct Work {
    bool respond = false;
    bool start = false;
    bool end = false;
    bool abort = false;
    bool overflow = false;
    HttpResponse head;  // the whole answer, or status and headers of a stream or upgrade
    std::vector<Chunk> chunks;
    std::shared_ptr<ByteStreamState> upgrade;
  };

  // Any thread: what Exchange offers.
  void Respond(HttpResponse response);
  bool StartStream(int status, Headers headers);
  bool Write(Chunk chunk);
  void EndStream();
  void Abort();
  size_t queued_bytes() const;
  bool HasRoom() const;
  void OnDrained(std::function<void()> callback, Executor& executor);
  void OnClose(std::function<void()> callback, Executor& executor);
  bool gone() const;
  std::shared_ptr<ByteStream> Upgrade(Headers headers);
  // The handler's last reference is gone.
  void Abandon();

  // I/O thread.
  Work TakeWork();
  void SetChannelBytes(size_t bytes);
  // The peer will not read the (rest of the) answer.
  void MarkGone();
  // The peer may be gone: it has ended its side.
  void NotifyClose();
  // The answer is complete; nobody is told about the connection's fate any more.
  void MarkFinished();

  HttpRequest request;                               // the handler's, once dispatched
  const std::weak_ptr<ServerConnection> connection;  // I/O thread

 private:
  enum class Phase { kWaiting, kStreaming, kAnswered };

  void ScheduleLocked() SWELL_REQUIRES(mutex_);
  void NotifyCloseLocked() SWELL_REQUIRES(mutex_);
  bool HasRoomLocked() const SWELL_REQUIRES(mutex_);
  void CheckDrainedLocked() SWELL_REQUIRES(mutex_);

  const std::shared_ptr<Mailbox> mailbox_;
  const size_t limit_;
  mutable Mutex mutex_;
  Phase phase_ SWELL_GUARDED_BY(mutex_) = Phase::kWaiting;
  bool scheduled_ SWELL_GUARDED_BY(mutex_) = false;
  bool gone_ SWELL_GUARDED_BY(mutex_) = false;
  bool peer_ended_ SWELL_GUARDED_BY(mutex_) = false;
  bool finished_ SWELL_GUARDED_BY(mutex_) = false;
  Work work_ SWELL_GUARDED_BY(mutex_);
  size_t pending_bytes_ SWELL_GUARDED_BY(mutex_) = 0;
  size_t channel_bytes_ SWELL_GUARDED_BY(mutex_) = 0;
  Executor* close_executor_ SWELL_GUARDED_BY(mutex_) = nullptr;
  std::function<void()> on_close_ SWELL_GUARDED_BY(mutex_);
  Executor* drain_executor_ SWELL_GUARDED_BY(mutex_) = nullptr;
  std::function<void()> on_drained_ SWELL_GUARDED_BY(mutex_);
};

}  // namespace swell::net
