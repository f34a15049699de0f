// NetProbe: one TCP or HTTP probe, without blocking.
// - Threads: the reactor's thread. Destroying it gives the probe up without an answer.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/callback_scope.h"
#include "base/timer.h"
#include "kube/net/reactor/reactor.h"
#include "kube/node/runtime.h"

namespace swell::edge {

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
  void OnReady(bool readable, bool writable);
  void OnAnswer();
  void Finish(bool ok, std::string message);

  net::Reactor& reactor_;
  node::ProbeSpec spec_;
  std::string address_;
  Done done_;
  int fd_ = -1;
  bool connected_ = false;
  std::string answer_;
  Timer timer_{reactor_};
  std::unique_ptr<net::FdWatch> watch_;
  CallbackScope scope_;
};

}  // namespace swell::edge
