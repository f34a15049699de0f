// Poller: many descriptors behind one of epoll's, for an event loop that watches this one. Internal
// to net.
//
// Asio arms a descriptor anew for each wait, with a system call each time; a descriptor here is
// told to the kernel when its interest changes, and whatever is ready at once is handed out
// together.
//
// - Threads: the reactor's thread only.
// - Ownership: a watch belongs to its FdWatch; the poller outlives it.
// - Invariants: no callback comes for a watch that has ended or for a direction nobody wants, not
//   even for what the kernel has already told.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "kube/net/reactor/socket.h"

namespace swell::net {

class Poller {
 public:
  using Ready = std::function<void(bool readable, bool writable)>;

  struct Watch {
    int fd = -1;
    uint64_t id = 0;
    Ready ready;
    uint32_t events = 0;  // that are of interest
    bool held = false;    // and of which the kernel is not to tell for now
  };

  Poller();

  // Readable while anything is to be handed out.
  int fd() const { return epoll_.get(); }

  // No interest at first. Makes the descriptor non-blocking; fails for what is none.
  Result<std::shared_ptr<Watch>> Add(int fd, Ready ready);
  // False when the descriptor cannot be watched, as a regular file cannot.
  bool SetInterest(Watch& watch, bool read, bool write);
  // Nothing is handed out until it is released: what is ready and waits need not be told of again.
  void Hold(Watch& watch);
  void Release(Watch& watch);
  void Remove(Watch& watch);

  // Hands out what is ready, until there is no more of this round or `stopped` says so.
  void HandOut(const std::function<bool()>& stopped);

 private:
  bool Tell(const Watch& watch, int change) const;

  UniqueFd epoll_;
  uint64_t next_id_ = 1;
  std::unordered_map<uint64_t, std::shared_ptr<Watch>> watches_;
};

}  // namespace swell::net
