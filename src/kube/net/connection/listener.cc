#include "kube/net/connection/listener.h"

#include <utility>

#include "kube/net/connection/byte_stream_state.h"
#include "kube/net/connection/channel.h"
#include "kube/net/reactor/socket.h"

namespace swell::net {
namespace {

constexpr size_t kBufferBytes = 4 << 20;
constexpr size_t kConnectionsMax = 1000;
constexpr int kAcceptsPerTurn = 64;
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);

}  // namespace

struct TcpListener::Socket {
  Listener listener;
  std::unique_ptr<FdWatch> watch;
};

TcpListener::TcpListener(Reactor& reactor,
                         std::shared_ptr<Socket> socket,
                         AcceptedCallback accepted)
    : reactor_(reactor),
      socket_(std::move(socket)),
      accepted_(std::move(accepted)),
      streams_(std::make_shared<std::set<std::shared_ptr<ByteStreamState>>>()) {}

TcpListener::~TcpListener() {
  socket_->watch.reset();
  for (const auto& state : std::exchange(*streams_, {})) {
    state->Detach(Status(Code::kUnavailable, "the listener is closed"));
  }
}

Result<std::unique_ptr<TcpListener>> TcpListener::Open(Reactor& reactor,
                                                       const std::string& address,
                                                       AcceptedCallback accepted) {
  auto socket = std::make_shared<Socket>();
  SWELL_ASSIGN_OR_RETURN(socket->listener, ListenOn(address));
  std::unique_ptr<TcpListener> self(
      new TcpListener(reactor, std::move(socket), std::move(accepted)));
  SWELL_ASSIGN_OR_RETURN(
      self->socket_->watch,
      reactor.WatchFd(self->socket_->listener.fd.get(), [raw = self.get()] { raw->Accept(); }));
  return self;
}

uint16_t TcpListener::port() const { return socket_->listener.port; }

void TcpListener::Accept() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    auto accepted = AcceptFrom(socket_->listener);
    if (accepted.status().code() == Code::kNoSpace) return PauseAccepting();
    if (!accepted.ok()) return;
    if (streams_->size() >= kConnectionsMax) continue;  // closed at once
    auto state = std::make_shared<ByteStreamState>(&reactor_, kBufferBytes);
    auto channel = std::make_shared<Channel>(reactor_, std::move(accepted->fd), state.get());
    if (!channel->StartAccepted(nullptr).ok()) continue;
    streams_->insert(state);
    state->Attach(std::move(channel), "",
                  [weak = std::weak_ptr(streams_), raw = std::weak_ptr(state)] {
                    auto streams = weak.lock();
                    if (streams) streams->erase(raw.lock());
                  });
    accepted_(std::make_shared<ByteStream>(state));
  }
}

// Out of descriptors: somebody still waits, and to ask in a loop would eat the CPU.
void TcpListener::PauseAccepting() {
  socket_->watch->SetInterest(Interest::kNone);
  reactor_.After(kAcceptPause, [socket = std::weak_ptr(socket_)] {
    const auto alive = socket.lock();
    if (alive && alive->watch) alive->watch->SetInterest(Interest::kRead);
  });
}

}  // namespace swell::net
