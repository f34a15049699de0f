// NetProbe: one probe of a pod over the network (TCP, HTTP, HTTPS, gRPC), without blocking.
// - Threads: the reactor's thread. Destroying it gives the probe up without an answer.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/callback_scope.h"
#include "base/timer.h"
#include "base/unique_fd.h"
#include "kube/net/reactor/reactor.h"
#include "kube/net/tls/tls_session.h"
#include "kube/node/runtime/runtime.h"
#include "kube/process/network/grpc_health.h"

namespace swell::process {

class NetProbe {
 public:
  using Done = std::function<void(node::ProbeResult)>;
  // `done` runs once, never from inside; it may destroy the probe.
  NetProbe(net::Reactor& reactor,
           const std::string& address,
           const node::ProbeSpec& spec,
           Done done);
  ~NetProbe();

 private:
  void Begin();
  void OnReady();
  bool Connected();
  // Whether there is an encrypted connection now, where one is wanted.
  bool Encrypted();
  // Whether all of it was sent.
  bool Send();
  void Receive();
  void OnBytes(std::string_view bytes);
  void OnHttpAnswer(bool at_end);
  void Wait(net::TlsSession::Io io);
  net::TlsSession::Io Read(char* buffer, size_t size, size_t* got);
  net::TlsSession::Io Write(std::string_view bytes, size_t* put);
  void Finish(bool ok, std::string message);
  void Fail(std::string_view what);

  net::Reactor& reactor_;
  const node::ProbeSpec spec_;
  const std::string address_;
  Done done_;
  UniqueFd fd_;
  std::unique_ptr<net::TlsSession> tls_;
  bool connected_ = false;
  bool encrypted_ = false;
  std::string to_send_;
  std::string answer_;
  GrpcHealthAnswer grpc_;
  Timer timer_{reactor_};
  std::unique_ptr<net::FdWatch> watch_;
  CallbackScope scope_;
};

// What an httpGet probe sends, with the kubelet's headers where the probe has none of that name.
std::string HttpProbeRequest(const node::ProbeSpec& spec, const std::string& address);

}  // namespace swell::process
