// ServerConnection: one accepted connection: bytes to requests, answers to bytes. Internal to net.
// ServerImpl: the listeners and the connections of one HttpServer.
// - Threads: the reactor's thread only.
// - Ownership: ServerImpl owns connections; a closed one lives until the loop's next turn, because
//   its own callbacks may be running.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/background_queue.h"
#include "base/callback_scope.h"
#include "base/fair_queue.h"
#include "base/timer.h"
#include "kube/net/connection/channel.h"
#include "kube/net/http/exchange_state.h"
#include "kube/net/http/http1_codec.h"
#include "kube/net/http/server.h"
#include "kube/net/reactor/socket.h"

namespace swell::net {

class ServerConnection;

// The address by which connections are counted. All loopback addresses count as one, because a
// local program may choose any of them. Empty for Unix sockets.
std::string AddressOf(std::string_view remote, int64_t uid);

class ServerImpl {
 public:
  ServerImpl(Reactor& reactor, const Clock& clock, Handler& handler, ServerConfig config);
  ~ServerImpl();

  Result<uint16_t> Listen(const std::string& address, const std::optional<TlsServerConfig>& tls);
  void Shutdown(Duration grace, std::function<void()> done);

  // For connections.
  void Dispatch(std::shared_ptr<ExchangeState> state);
  void Remove(ServerConnection* connection);
  // Whether the connection waits for a request of its peer's.
  void SetWaiting(ServerConnection* connection, bool waiting);
  // More of its request's body has come.
  void CountBody(ServerConnection* connection, size_t bytes);
  // The body is complete, or no more of it is wanted.
  void ForgetBody(ServerConnection* connection);
  // The connection has work. It is done at once while this turn has done little; otherwise it waits
  // for its client's turn. The client that has had the least of this thread's time is next.
  void TakeTurn(const std::shared_ptr<ServerConnection>& connection);
  // One step of the handshake whose turn it is runs on a thread of its own.
  void ShakeAside(const std::string& client, std::function<void()> step);
  // The Date header's value, formatted once a second.
  const std::string& Date();
  bool draining() const { return draining_; }

  Reactor& reactor;
  const ServerConfig config;
  const std::shared_ptr<Mailbox> mailbox;
  ServerStats stats;

 private:
  struct Address {
    size_t connections = 0;
    std::list<ServerConnection*> waiting;  // the longest first
    std::list<ServerConnection*> sending;  // they send a body; the longest first
    size_t body_bytes = 0;                 // received from these
  };
  struct Port {
    Listener listener;
    std::shared_ptr<TlsContext> tls;
    std::unique_ptr<FdWatch> watch;
  };

  void Accept(Port* port);
  void Adopt(const Port& port, Accepted accepted);
  void Refuse(const Port& port, const Accepted& accepted);
  void PauseAccepting(Port* port);
  void ArmTick();
  void Tick();
  void CloseListeners();
  void MaybeDrained();
  void ArmTurns();
  void ServeTurns();
  void ShakeNext();
  bool MakeRoomFor(const std::string& address);
  bool CloseWaiting(const std::string& address);

  const Clock& clock_;
  Handler& handler_;
  std::vector<std::unique_ptr<Port>> ports_;
  std::vector<std::shared_ptr<ServerConnection>> connections_;  // each knows its index
  std::map<std::string, Address> addresses_;
  size_t body_bytes_ = 0;  // of all addresses
  FairQueue<std::shared_ptr<ServerConnection>> turns_;
  bool turns_armed_ = false;
  FairQueue<std::shared_ptr<ServerConnection>> handshakes_;  // connections whose next step waits
  std::string shaking_;  // the client whose step runs; empty: none runs
  SteadyTime shaking_since_;
  std::unique_ptr<BackgroundQueue<std::function<void()>>> aside_;  // where TLS is spoken
  uint64_t turn_ = 0;                                              // of the reactor
  SteadyTime turn_began_;
  int at_once_ = 0;  // connections served in it without waiting
  Duration tick_period_;
  Timer tick_{reactor};
  Timer drain_timer_{reactor};
  bool draining_ = false;
  std::function<void()> drained_;
  int64_t date_s_ = -1;
  std::string date_;
  CallbackScope scope_;
};

class ServerConnection final : public Channel::Events,
                               public std::enable_shared_from_this<ServerConnection> {
 public:
  ServerConnection(ServerImpl& server, PeerIdentity peer);

  Status Start(UniqueFd fd, std::shared_ptr<TlsContext> tls);
  void OnExchangeWork(const std::shared_ptr<ExchangeState>& state);
  // Closes what has used up its time.
  void CheckTimeouts(SteadyTime now, Duration write_stall_timeout);
  // Bytes of answers that the peer has not read.
  size_t unread_bytes() const { return channel_ ? channel_->queued_bytes() : 0; }
  // The server drains: true idleness ends now, the rest after its answer.
  void Drain();
  void Close(const Status& why);

  void OnOpen() override;
  void OnData(std::string_view bytes) override;
  void OnEof() override;
  void OnProgress() override;
  void OnError(const Status& why) override;
  bool TakesTurn(Readiness ready) override;
  bool Waits() const override { return waits; }

  // Names the client, as far as is known.
  const std::string& client() const { return client_; }
  bool shakes_hands() const { return phase_ == Phase::kHandshake; }
  // Does what is to be done.
  void Serve();

  size_t index = 0;           // in ServerImpl's list
  bool waits = false;         // for its turn
  const std::string address;  // of the peer
  bool waiting = false;       // its place in ServerImpl's list, if it waits
  std::list<ServerConnection*>::iterator waiting_at;
  size_t body_bytes = 0;  // counted for its address; 0: it is not in that list
  std::list<ServerConnection*>::iterator sending_at;

 private:
  enum class Phase {
    kHandshake,
    kIdle,      // nothing of the next request has come
    kHead,      // some has
    kBody,      // the head is complete
    kBusy,      // the handler has it
    kFlushing,  // answered; the next request waits until the peer has read enough
    kLinger,    // last answer sent, waiting for the peer to close
    kUpgraded,
    kClosed,
  };

  struct Due {
    Readiness ready;
    bool answer = false;
  };

  void Enter(Phase phase);
  void Answer();
  // Parses what has come, as far as the next request for the handler. Returns bytes consumed.
  size_t Parse(std::string_view bytes);
  void ParseBuffered();
  void DispatchRequest();
  void Refuse(int http_status, const std::string& message);
  void WriteAnswer(HttpResponse response);
  void WriteStreamHead(const HttpResponse& head);
  void WriteChunks(std::vector<Chunk> chunks);
  void FinishAnswer();
  void NextRequest();
  void BeginLinger();
  void HandOver(const HttpResponse& head, std::shared_ptr<ByteStreamState> stream);

  ServerImpl& server_;
  PeerIdentity peer_;
  std::string client_;
  Due due_;
  std::shared_ptr<Channel> channel_;
  RequestParser parser_;
  Phase phase_ = Phase::kHandshake;
  SteadyTime since_;  // when the phase began
  bool first_request_ = true;
  bool keep_alive_ = true;
  bool head_request_ = false;  // answer without body
  bool http10_ = false;
  bool streaming_ = false;
  bool chunked_ = false;
  bool peer_ended_ = false;
  std::string buffered_;  // bytes behind the request being handled
  std::string scratch_;   // for heads
  std::shared_ptr<ExchangeState> current_;
  std::shared_ptr<ByteStreamState> upgraded_;
};

}  // namespace swell::net
