// FdStreams: pipes, terminals and sockets as api::DuplexStreams. The descriptors are read and
// written on the I/O thread; the streams are used on the core thread. At most kDuplexHighWater
// bytes are under way to a reader. A writer can read how many bytes it has queued.
// - Threads: FdStreams on the I/O thread; its streams on the core thread.
// - Ownership: `core` and `io` outlive FdStreams; streams may outlive it and are then ended. A
//   stream owns its descriptors.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/callback_scope.h"
#include "kube/api/rest/duplex.h"
#include "kube/net/reactor/reactor.h"

namespace swell::process {

class FdIo;

// One stream, and what only the I/O thread may do with it.
struct FdStream {
  api::DuplexPtr stream;
  std::shared_ptr<FdIo> io;
};

class FdStreams {
 public:
  enum class Kind { kPipes, kTerminal, kSocket };

  FdStreams(Executor& core, net::Reactor& io);
  ~FdStreams();

  // Takes over both descriptors: -1 for a direction there is not, the same twice for both in one.
  FdStream Make(Kind kind, int read_fd, int write_fd);
  // The writer is gone. The stream ends when what it has written so far is read.
  static void EndWhenEmpty(const std::shared_ptr<FdIo>& io);

 private:
  Executor& core_;
  net::Reactor& reactor_;
  std::vector<std::weak_ptr<FdIo>> made_;
  CallbackScope scope_;
};

}  // namespace swell::process
