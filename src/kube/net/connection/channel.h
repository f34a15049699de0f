// Channel: one connected socket, plain or TLS, with an output queue. Internal to net.
// - Threads: the reactor's thread only.
// - Ownership: shared, because callbacks may drop their owner's reference; `events` must stay valid
//   until Close or OnError. After either, no event comes.
// - Invariants: bytes that are read are handed on at once and never kept here. The owner bounds the
//   output by queued_bytes().
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kube/net/connection/chunk.h"
#include "kube/net/reactor/reactor.h"
#include "kube/net/reactor/socket.h"
#include "kube/net/tls/tls_session.h"

namespace swell::net {

class Channel : public std::enable_shared_from_this<Channel> {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    // Connected, and shaken hands where there is TLS.
    virtual void OnOpen() = 0;
    // The bytes are only valid during the call.
    virtual void OnData(std::string_view bytes) = 0;
    // The peer will send no more; it may still read.
    virtual void OnEof() = 0;
    // Some output has gone to the kernel since the last event.
    virtual void OnProgress() = 0;
    // The channel is closed.
    virtual void OnError(const Status& why) = 0;
    // The socket is ready. False: not now; the listener calls Proceed later.
    virtual bool TakesTurn(Readiness /*ready*/) { return true; }
    // After that: whether it is still to come.
    virtual bool Waits() const { return false; }
  };

  Channel(Reactor& reactor, UniqueFd fd, Events* events);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Waits until the socket, which connects already, is connected. Then shakes hands if there is
  // `tls`. Events come from the loop.
  Status StartConnecting(std::shared_ptr<TlsContext> tls, const std::string& server_name);
  // Takes an accepted socket. With `tls` it shakes hands, and events come from the loop. Without,
  // the channel opens at once.
  Status StartAccepted(std::shared_ptr<TlsContext> tls);
  // Call before it starts. A handshake computes for a millisecond; `run_aside` gets that work and
  // runs it on another thread. The result comes back through the reactor.
  using RunAside = std::function<void(std::function<void()>)>;
  void ShakeHandsAside(RunAside run_aside) { run_aside_ = std::move(run_aside); }
  void SetEvents(Events* events) { events_ = events; }
  void SetReading(bool on);
  // Reads and writes what can be read and written. Told too late or twice, it finds nothing to do.
  void Proceed(Readiness ready);

  // Queue output; small pieces are copied together, large chunks are shared.
  void Send(std::string_view bytes);
  void Send(Chunk chunk);
  // A body of many pieces. They are copied together only as the peer takes them, so that a long
  // list needs no memory of its own.
  void Send(std::vector<Chunk> body);
  // Gives the kernel what it takes now; the rest follows by itself. May report OnError, never
  // OnProgress.
  void Flush();
  // Shuts writing down once the queue is empty; reading continues.
  void ShutdownWrite();
  void Close();

  bool closed() const { return events_ == nullptr; }
  bool reading() const { return reading_; }
  size_t queued_bytes() const { return queued_bytes_; }
  // When the peer last took output, or output was queued behind nothing.
  SteadyTime last_progress() const { return last_progress_; }
  const TlsSession* tls() const { return tls_.get(); }

 private:
  // Either text owned here or a shared chunk.
  struct Piece {
    std::string text;
    Chunk chunk;
    size_t size() const { return chunk ? chunk->size() : text.size(); }
    const char* data() const { return chunk ? chunk->data() : text.data(); }
  };
  enum class Phase { kConnecting, kHandshake, kOpen, kClosed };
  enum class Flushed { kAll, kBlocked, kTurnOver };

  void OnReady(Readiness ready);
  void FinishConnect();
  void ContinueHandshake();
  void FinishHandshake(TlsSession::Io outcome);
  void ReadSome();
  // One read from socket or TLS. False when there is nothing more for now.
  bool ReadOnce();
  void Append(std::string_view bytes);
  void Append(Chunk chunk);
  // Takes from the body until so much is in the queue.
  void FillQueue(size_t enough);
  Flushed FlushPlain();
  Flushed FlushTls();
  void FlushLater();
  std::string_view NextForTls(std::span<char> record) const;
  void Sent(size_t bytes);
  Status WatchSocket();
  void UpdateInterest();
  void MaybeShutdown();
  void ReadLater();
  void Fail(const Status& why);

  Reactor& reactor_;
  UniqueFd fd_;
  Events* events_;
  std::shared_ptr<TlsContext> tls_context_;
  std::string server_name_;
  std::unique_ptr<TlsSession> tls_;  // with the socket another thread's while it shakes hands
  RunAside run_aside_;
  std::unique_ptr<FdWatch> watch_;
  Phase phase_ = Phase::kOpen;

  std::deque<Piece> queue_;
  size_t front_offset_ = 0;  // of the first piece, already sent
  std::vector<Chunk> body_;  // sent after the queue, without what has been taken from it
  size_t body_taken_ = 0;
  size_t body_bytes_ = 0;    // not taken yet
  size_t queued_bytes_ = 0;  // in the queue and the body
  std::string spare_;        // an emptied text buffer, for the next small piece
  SteadyTime last_progress_;

  bool reading_ = false;
  bool saw_eof_ = false;
  bool read_later_ = false;
  bool flush_later_ = false;
  bool blocked_ = false;          // output waits for writability
  bool tls_wants_write_ = false;  // the handshake does
  bool shutdown_wanted_ = false;
  bool shutdown_done_ = false;
};

}  // namespace swell::net
