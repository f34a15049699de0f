// ExecSessions: commands that run in containers, and clients that attach to containers.
// - Threads: the I/O thread. The streams it makes are used on the core thread.
// - Ownership: reactor, launcher and streams outlive it; it ends the commands that still run.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "kube/net/reactor/reactor.h"
#include "kube/node/runtime/runtime.h"
#include "kube/process/pod_store.h"
#include "kube/process/shim_launcher.h"
#include "kube/process/streams/fd_stream.h"

namespace swell::process {

class ExecSessions {
 public:
  struct Session;
  struct Opened {
    api::DuplexPtr io;
    api::DuplexPtr error;
    std::shared_ptr<Session> session;
  };

  ExecSessions(net::Reactor& reactor, const ShimLauncher& launcher, FdStreams& streams);
  ~ExecSessions();

  // Runs a command and collects its output.
  void Run(const ProcessContainer& container,
           const node::ExecSpec& spec,
           std::function<void(Result<node::ExecResult>)> done);

  // Runs a command with live streams, or attaches to the container. `exited` runs once if `done`
  // gave streams.
  void Open(ProcessContainer& container,
            const node::StdioSpec& spec,
            std::function<void(Result<Opened>)> done,
            std::function<void(Result<int>)> exited);
  static void Resize(Session& session, node::TerminalSize size);
  // Ends the command; a container that is attached to runs on.
  static void HangUp(const Session& session);

 private:
  struct Command;

  void OnCommandDone(const std::shared_ptr<Command>& command);
  Status StartCommand(const ProcessContainer& container,
                      const node::StdioSpec& spec,
                      const std::shared_ptr<Session>& session);
  Status Attach(ProcessContainer& container,
                const node::StdioSpec& spec,
                const std::shared_ptr<Session>& session);
  void OnTerminal(const std::shared_ptr<Session>& session);
  void OnExit(const std::shared_ptr<Session>& session);

  net::Reactor& reactor_;
  const ShimLauncher& launcher_;
  FdStreams& streams_;
  std::set<std::shared_ptr<Command>> commands_;
  std::set<std::shared_ptr<Session>> sessions_;  // with a command of their own
};

}  // namespace swell::process
