// Poller: watches many descriptors with one epoll descriptor, which an event loop watches. Internal
// to net.
//
// Asio arms a descriptor with a system call for each wait. Here the kernel is called only when the
// interest in a descriptor changes, and all descriptors that are ready are handed out together.
//
// - Threads: the reactor's thread only.
// - Ownership: a watch belongs to its FdWatch; the poller outlives it.
// - Invariants: no callback comes for a watch that has ended or for a direction without interest,
//   even if the kernel has reported it already.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "kube/net/reactor/socket.h"

namespace swell::net {

class Poller {
 public:
  using Ready = std::function<void(Readiness)>;

  struct Watch {
    int fd = -1;
    uint64_t id = 0;
    Ready ready;
    uint32_t events = 0;  // that are of interest
    bool held = false;    // the kernel reports none of them for now
  };

  Poller();

  // Readable while anything is to be handed out.
  int fd() const { return epoll_.get(); }

  // Watches nothing at first. Makes the descriptor non-blocking; fails if it is not a descriptor.
  Result<std::shared_ptr<Watch>> Add(int fd, Ready ready);
  // False when the descriptor cannot be watched, as a regular file cannot.
  bool SetInterest(Watch& watch, Interest interest);
  // Nothing is handed out until Release. Readiness that waits need not be reported again.
  void Hold(Watch& watch);
  void Release(Watch& watch);
  void Remove(Watch& watch);

  // Hands out what is ready, until there is no more of this round or `stopped` says so.
  void HandOut(const std::function<bool()>& stopped);

 private:
  bool Control(const Watch& watch, int change) const;

  UniqueFd epoll_;
  uint64_t next_id_ = 1;
  std::unordered_map<uint64_t, std::shared_ptr<Watch>> watches_;
};

}  // namespace swell::net
