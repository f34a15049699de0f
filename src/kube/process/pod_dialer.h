// PodDialer: connects to TCP ports of pods, as from inside their networks.
// - Threads: the I/O thread.
// - Ownership: reactor and streams outlive it; connections that are not made yet end with it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "kube/net/reactor/reactor.h"
#include "kube/process/streams/fd_stream.h"

namespace swell::process {

class PodDialer {
 public:
  using Done = std::function<void(Result<api::DuplexPtr>)>;

  PodDialer(net::Reactor& reactor, FdStreams& streams);
  ~PodDialer();

  // Tries the addresses one by one. `netns` is the path of a network namespace; empty: the host's.
  void Dial(const std::string& netns, std::vector<std::string> hosts, uint16_t port, Done done);

 private:
  struct Attempt;

  void TryNext(const std::shared_ptr<Attempt>& attempt);
  void OnConnected(const std::shared_ptr<Attempt>& attempt);

  net::Reactor& reactor_;
  FdStreams& streams_;
  std::set<std::shared_ptr<Attempt>> attempts_;
};

}  // namespace swell::process
