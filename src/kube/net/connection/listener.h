// TcpListener: accepts plain TCP connections and hands them out as byte streams, for forwarding.
// - Threads: the reactor's thread; the streams' own rules are ByteStream's.
// - Ownership: the reactor outlives the listener. Streams may outlive it and are then closed.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "kube/net/connection/byte_stream.h"
#include "kube/net/reactor/reactor.h"

namespace swell::net {

class TcpListener {
 public:
  using AcceptedCallback = std::function<void(std::shared_ptr<ByteStream>)>;

  // "127.0.0.1:8080", "[::1]:0".
  static Result<std::unique_ptr<TcpListener>> Open(Reactor& reactor,
                                                   const std::string& address,
                                                   AcceptedCallback accepted);
  ~TcpListener();
  uint16_t port() const;

 private:
  struct Socket;
  TcpListener(Reactor& reactor, std::shared_ptr<Socket> socket, AcceptedCallback accepted);
  void Accept();
  void PauseAccepting();

  Reactor& reactor_;
  std::shared_ptr<Socket> socket_;
  AcceptedCallback accepted_;
  // Those whose connection is not over yet.
  std::shared_ptr<std::set<std::shared_ptr<ByteStreamState>>> streams_;
};

}  // namespace swell::net
