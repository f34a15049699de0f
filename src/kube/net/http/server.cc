#include "kube/net/http/server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/descriptors.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/net/http/server_connection.h"

namespace swell::net {
namespace {

constexpr int kMaxAcceptsPerTurn = 4;
// What one turn of the loop does, in connections and in their time: then it looks who else is
// ready.
constexpr int kServedPerTurn = 16;
constexpr Duration kServedPerTurnFor = std::chrono::microseconds(50);
constexpr size_t kStepsAside = 1;  // of handshakes; the others wait by whose they are
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);

Duration TickPeriod(const ServerConfig& config) {
  Duration least = std::min({config.header_timeout, config.body_timeout, config.idle_timeout,
                             config.write_stall_timeout, config.crowded_stall_timeout,
                             config.tls_handshake_timeout, config.linger_timeout});
  return std::clamp<Duration>(least / 4, std::chrono::milliseconds(1), std::chrono::seconds(1));
}

// Clients must leave descriptors for the process itself: for its database and its pods.
ServerConfig Bounded(ServerConfig config) {
  config.max_connections =
      std::min(config.max_connections, std::max<size_t>(1, DescriptorLimit() / 2));
  return config;
}

}  // namespace

ServerImpl::ServerImpl(Reactor& reactor, const Clock& clock, Handler& handler, ServerConfig config)
    : reactor(reactor),
      config(Bounded(config)),
      mailbox(std::make_shared<Mailbox>(reactor)),
      clock_(clock),
      handler_(handler),
      turns_(this->config.max_connections, this->config.max_connections),
      handshakes_(this->config.max_connections, this->config.max_connections),
      tick_period_(TickPeriod(config)) {}

ServerImpl::~ServerImpl() {
  scope_.Close();
  mailbox->Close();
  CloseListeners();
  drained_ = nullptr;
  while (!connections_.empty()) {
    connections_.back()->Close(Status(Code::kUnavailable, "the server has stopped"));
  }
  aside_ = nullptr;  // when its step is done
}

Result<uint16_t> ServerImpl::Listen(const std::string& address,
                                    const std::optional<TlsServerConfig>& tls) {
  auto port = std::make_unique<Port>();
  if (tls) {
    auto context = MakeServerContext(*tls);
    if (!context.ok()) return context.status().WithContext(StrCat("listen on ", address));
    port->tls = std::move(*context);
    if (aside_ == nullptr) {
      aside_ = std::make_unique<BackgroundQueue<std::function<void()>>>(
          kStepsAside, Duration::zero(), [](const std::vector<std::function<void()>>& steps) {
            for (const auto& step : steps) step();
          });
    }
  }
  SWELL_ASSIGN_OR_RETURN(port->listener, ListenOn(address));
  SWELL_ASSIGN_OR_RETURN(port->watch, reactor.WatchFd(port->listener.fd.get(),
                                                      [this, raw = port.get()] { Accept(raw); }));
  uint16_t number = port->listener.port;
  ports_.push_back(std::move(port));
  return number;
}

void ServerImpl::Accept(Port* port) {
  for (int i = 0; i < kMaxAcceptsPerTurn; ++i) {
    auto accepted = AcceptFrom(port->listener);
    if (accepted.ok()) {
      stats.connections_accepted.fetch_add(1, std::memory_order_relaxed);
      if (!MakeRoomFor(AddressOf(accepted->remote, accepted->uid))) {
        Refuse(*port, *accepted);
      } else {
        Adopt(*port, std::move(*accepted));
      }
      continue;
    }
    if (accepted.status().code() == Code::kTimeout) return;
    if (accepted.status().code() == Code::kNoSpace) {
      SWELL_LOG_WARNING("net", "cannot accept connections, trying again soon",
                        {"why", accepted.status().message()});
      PauseAccepting(port);
      return;
    }
  }
}

// The connection that has waited longest for a request makes room. So a client that opens many and
// sends nothing keeps no other client out.
bool ServerImpl::MakeRoomFor(const std::string& address) {
  const size_t share = std::max<size_t>(1, config.max_connections / config.address_part);
  const auto own = addresses_.find(address);
  const bool counted = own != addresses_.end() && !address.empty();
  if (counted && own->second.connections >= share && !CloseWaiting(address)) return false;
  if (connections_.size() < config.max_connections) return true;
  const auto most =
      std::max_element(addresses_.begin(), addresses_.end(), [](const auto& a, const auto& b) {
        return a.second.waiting.size() < b.second.waiting.size();
      });
  return most != addresses_.end() && CloseWaiting(std::string(most->first));
}

bool ServerImpl::CloseWaiting(const std::string& address) {
  const std::list<ServerConnection*>& waiting = addresses_[address].waiting;
  if (waiting.empty()) return false;
  waiting.front()->Close(Status(Code::kUnavailable, "others need its place"));
  return true;
}

void ServerImpl::SetWaiting(ServerConnection* connection, bool waiting) {
  if (std::exchange(connection->waiting, waiting) == waiting) return;
  std::list<ServerConnection*>& list = addresses_[connection->address].waiting;
  if (waiting) {
    connection->waiting_at = list.insert(list.end(), connection);
  } else {
    list.erase(connection->waiting_at);
  }
}

void ServerImpl::CountBody(ServerConnection* connection, size_t bytes) {
  if (bytes == 0) return;
  Address& address = addresses_[connection->address];
  if (connection->body_bytes == 0) {
    connection->sending_at = address.sending.insert(address.sending.end(), connection);
  }
  const size_t more = bytes - std::exchange(connection->body_bytes, bytes);
  address.body_bytes += more;
  body_bytes_ += more;
  while (body_bytes_ > config.coming_bytes) {
    const auto most = std::max_element(
        addresses_.begin(), addresses_.end(),
        [](const auto& a, const auto& b) { return a.second.body_bytes < b.second.body_bytes; });
    stats.overflows.fetch_add(1, std::memory_order_relaxed);
    most->second.sending.front()->Close(Status(Code::kUnavailable, "others need its memory"));
  }
}

void ServerImpl::ForgetBody(ServerConnection* connection) {
  const size_t bytes = std::exchange(connection->body_bytes, 0);
  if (bytes == 0) return;
  Address& address = addresses_[connection->address];
  address.sending.erase(connection->sending_at);
  address.body_bytes -= bytes;
  body_bytes_ -= bytes;
}

// Out of descriptors: the listener stays readable, and asking in a loop would eat the CPU.
void ServerImpl::PauseAccepting(Port* port) {
  port->watch->SetInterest(Interest::kNone);
  reactor.After(kAcceptPause, scope_.Wrap([this, port] {
    for (auto& candidate : ports_) {
      if (candidate.get() == port) port->watch->SetInterest(Interest::kRead);
    }
  }));
}

void ServerImpl::Refuse(const Port& port, const Accepted& accepted) {
  stats.connections_refused.fetch_add(1, std::memory_order_relaxed);
  if (port.tls != nullptr) return;  // no words without a handshake, and that would cost too much
  Status status(Code::kUnavailable,
                StrCat("the server has its ", config.max_connections, " connections, try later"));
  HttpResponse response = StatusResponse(status);
  std::string text;
  AppendResponseHead(&text, response.status, response.headers, Framing::kLength,
                     BodySize(response.body), false, Date());
  text += BodyText(response.body);
  (void)send(accepted.fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
  shutdown(accepted.fd.get(), SHUT_WR);
}

void ServerImpl::Adopt(const Port& port, Accepted accepted) {
  PeerIdentity peer;
  peer.remote = std::move(accepted.remote);
  peer.uid = accepted.uid;
  auto connection = std::make_shared<ServerConnection>(*this, std::move(peer));
  connection->index = connections_.size();
  ++addresses_[connection->address].connections;
  SetWaiting(connection.get(), true);
  connections_.push_back(connection);
  stats.connections_open.store(connections_.size(), std::memory_order_relaxed);
  Status started = connection->Start(std::move(accepted.fd), port.tls);
  if (!started.ok()) {
    SWELL_LOG_WARNING("net", "connection not served", {"why", started.message()});
    connection->Close(started);
    return;
  }
  ArmTick();
}

void ServerImpl::Dispatch(std::shared_ptr<ExchangeState> state) {
  stats.requests.fetch_add(1, std::memory_order_relaxed);
  handler_.OnRequest(std::make_shared<Exchange>(std::move(state)));
}

void ServerImpl::Remove(ServerConnection* connection) {
  size_t index = connection->index;
  std::shared_ptr<ServerConnection> removed = std::move(connections_[index]);
  if (index + 1 < connections_.size()) {
    connections_[index] = std::move(connections_.back());
    connections_[index]->index = index;
  }
  connections_.pop_back();
  SetWaiting(removed.get(), false);
  const auto address = addresses_.find(removed->address);
  if (--address->second.connections == 0) addresses_.erase(address);
  stats.connections_open.store(connections_.size(), std::memory_order_relaxed);
  // Its own methods may be on the stack.
  reactor.Post([removed = std::move(removed)] {});
  MaybeDrained();
}

void ServerImpl::TakeTurn(const std::shared_ptr<ServerConnection>& connection) {
  if (connection->waits) return;
  if (connection->shakes_hands()) {
    connection->waits = handshakes_.Push(connection->client(), "", connection);
    return ShakeNext();
  }
  if (std::exchange(turn_, reactor.turn()) != reactor.turn()) {
    at_once_ = 0;
    turn_began_ = reactor.Now();
  }
  if (turns_.empty() && at_once_ < kServedPerTurn &&
      reactor.Now() - turn_began_ < kServedPerTurnFor) {
    ++at_once_;
    return connection->Serve();
  }
  if (!turns_.Push(connection->client(), "", connection)) return connection->Serve();
  connection->waits = true;
  ArmTurns();
}

void ServerImpl::ArmTurns() {
  if (std::exchange(turns_armed_, true)) return;
  reactor.Post(scope_.Wrap([this] { ServeTurns(); }));
}

void ServerImpl::ServeTurns() {
  turns_armed_ = false;
  SteadyTime now = reactor.Now();
  const SteadyTime end = now + kServedPerTurnFor;
  for (int i = 0; i < kServedPerTurn && now < end; ++i) {
    const auto next = turns_.Pop();
    if (!next) return;
    const SteadyTime began = now;
    next->second->waits = false;
    next->second->Serve();
    now = reactor.Now();
    turns_.Charge(next->first, now - began);
  }
  if (!turns_.empty()) ArmTurns();
}

void ServerImpl::ShakeNext() {
  while (shaking_.empty()) {
    const auto next = handshakes_.Pop();
    if (!next) return;
    next->second->waits = false;
    next->second->Serve();
  }
}

void ServerImpl::ShakeAside(const std::string& client, std::function<void()> step) {
  shaking_ = client;
  shaking_since_ = reactor.Now();
  auto stepped = scope_.Wrap([this] {
    handshakes_.Charge(shaking_, reactor.Now() - shaking_since_);
    shaking_.clear();
    ShakeNext();
  });
  aside_->Push(
      [this, step = std::move(step), stepped] {
        step();
        reactor.Post(stepped);
      },
      1);
}

const std::string& ServerImpl::Date() {
  int64_t now_s = clock_.Now().unix_ns / 1'000'000'000;
  if (now_s != date_s_) {
    date_s_ = now_s;
    date_ = HttpDate(now_s);
  }
  return date_;
}

void ServerImpl::ArmTick() {
  if (!tick_.pending()) tick_.Start(tick_period_, [this] { Tick(); });
}

void ServerImpl::Tick() {
  SteadyTime now = reactor.Now();
  size_t unread = 0;
  for (const auto& connection : connections_) unread += connection->unread_bytes();
  const Duration stall = unread > config.unread_bytes
                             ? std::min(config.crowded_stall_timeout, config.write_stall_timeout)
                             : config.write_stall_timeout;
  // Backwards: a connection that closes swaps the last one, already checked, into its place.
  for (size_t i = connections_.size(); i-- > 0;) {
    if (i < connections_.size()) connections_[i]->CheckTimeouts(now, stall);
  }
  if (!connections_.empty()) ArmTick();
}

void ServerImpl::CloseListeners() {
  for (auto& port : ports_) {
    if (!port->listener.unix_path.empty()) unlink(port->listener.unix_path.c_str());
  }
  ports_.clear();
}

void ServerImpl::Shutdown(Duration grace, std::function<void()> done) {
  if (draining_) return;
  draining_ = true;
  drained_ = std::move(done);
  CloseListeners();
  for (size_t i = connections_.size(); i-- > 0;) {
    if (i < connections_.size()) connections_[i]->Drain();
  }
  drain_timer_.Start(grace, [this] {
    while (!connections_.empty()) {
      connections_.back()->Close(Status(Code::kUnavailable, "the server is stopping"));
    }
  });
  MaybeDrained();
}

void ServerImpl::MaybeDrained() {
  if (!draining_ || !connections_.empty() || !drained_) return;
  drain_timer_.Cancel();
  reactor.Post(std::exchange(drained_, nullptr));
}

HttpServer::HttpServer(Reactor& reactor, const Clock& clock, Handler& handler, ServerConfig config)
    : impl_(std::make_shared<ServerImpl>(reactor, clock, handler, config)) {}
HttpServer::~HttpServer() = default;
Result<uint16_t> HttpServer::Listen(const std::string& address,
                                    const std::optional<TlsServerConfig>& tls) {
  return impl_->Listen(address, tls);
}
void HttpServer::Shutdown(Duration grace, std::function<void()> done) {
  impl_->Shutdown(grace, std::move(done));
}
const ServerStats& HttpServer::stats() const { return impl_->stats; }

}  // namespace swell::net
