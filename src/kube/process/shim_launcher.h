// ShimLauncher: starts pod shims, some of them before they are needed.
//
// Loading the program takes most of a shim's start. A few shims are therefore kept ready: each
// waits on its status socket for the directory of a container.
//
// - Threads: the I/O thread.
// - Ownership: the reactor outlives the launcher. Shims that have started a container outlive both.
#pragma once

#include <sys/types.h>

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/callback_scope.h"
#include "base/unique_fd.h"
#include "kube/net/reactor/reactor.h"

namespace swell::process {

class ShimLauncher {
 public:
  // -1: /dev/null; no status descriptor.
  struct Fds {
    int in = -1, out = -1, err = -1, status = -1;
  };
  // The shim's process id, once it has started its container.
  using Done = std::function<void(Result<pid_t>)>;

  // `command` is the shim program with its first arguments; `ready` is how many are kept ready;
  // `group` is the control group that the shims of containers join, if it is not empty.
  ShimLauncher(net::Reactor& reactor,
               std::vector<std::string> command,
               size_t ready,
               std::string group);
  ~ShimLauncher();

  // Runs the shim program with these arguments.
  Result<pid_t> Spawn(const std::vector<std::string>& arguments, const Fds& fds) const;

  // Starts the container that DIR/spec.json describes. `done` runs later unless this fails.
  Status Launch(const std::string& pod_uid, const std::string& dir, Done done);
  bool IsLaunching(const std::string& pod_uid) const;
  void Refill();
  // Ends the shims that are ready, and keeps none from now on.
  void EndReady();

 private:
  struct Ready {
    pid_t pid = -1;
    UniqueFd socket;
  };
  struct Pending {
    std::string pod_uid;
    Ready shim;
    std::string output;
    std::unique_ptr<net::FdWatch> watch;  // ends before the shim's socket
    Done done;
  };

  Result<Ready> SpawnReady() const;
  Result<Ready> SendDir(const std::string& dir);
  void OnOutput(const std::shared_ptr<Pending>& launch);

  net::Reactor& reactor_;
  const std::vector<std::string> command_;
  const std::string group_;
  size_t ready_wanted_;
  std::deque<Ready> ready_;
  bool refill_posted_ = false;
  std::set<std::shared_ptr<Pending>> pending_;
  CallbackScope scope_;
};

// Kills a child and waits for its end.
void KillAndReap(pid_t pid);
// Waits for the end of a child that ends by itself; its exit code, 128 + signal when killed.
int Reap(pid_t pid);
UniqueFd OpenPidFd(pid_t pid);

}  // namespace swell::process
